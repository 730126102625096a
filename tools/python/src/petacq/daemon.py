"""A petacqd that is running: its status, and its control."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from petacq.errors import DaemonError
from petacq.rpc import Connection
from petacq.run_list import ListedRun

DEFAULT_SOCKET = "/run/petacqd/control.sock"
_MOST_RUNS = 1000  # in one answer


class Daemon:
    """The petacqd on this host that listens on that control socket.

    ``socket``: its path; by default that in the environment variable PETACQ_SOCKET, else /run/petacqd/control.sock.
    ``timeout_s``: how long to wait for an answer.

    Nothing is kept open: each call connects, so that the daemon may restart between two calls, and several threads may call.
    Everybody who can connect may look; docs/reference/control.md says who may start and stop runs, and what the answers hold.

    Every call raises RefusedError with the reason if the daemon refuses, DaemonTimeoutError if it does not answer in time, and
    DaemonError if it cannot be reached or goes away.
    """

    def __init__(self, socket: str | os.PathLike[str] | None = None, timeout_s: float = 30.0) -> None:
        self.socket = os.fspath(socket or os.environ.get("PETACQ_SOCKET") or DEFAULT_SOCKET)
        if not timeout_s > 0:
            raise ValueError(f"timeout_s {timeout_s}: expected seconds above 0")
        self.timeout_s = timeout_s

    def __repr__(self) -> str:
        return f"<Daemon at {self.socket!r}>"

    def call(self, method: str, timeout_s: float | None = None, /, **parameters: Any) -> Any:
        """Any method of the control protocol. Parameters that are None are left out."""
        with Connection(self.socket, self.timeout_s) as connection:
            return connection.call(method, parameters, timeout_s or self.timeout_s)

    def status(self) -> dict[str, Any]:
        """The status document, docs/reference/status.md."""
        return _object(self.call("status"), "status")

    def subscribe(self, interval_s: float = 1.0) -> Iterator[dict[str, Any]]:
        """The status document now, and again after every interval (0.1 to 3600 s), until the loop is left. A program that
        looks too rarely gets the latest one less often, and delays nobody."""
        # Not a generator: a daemon that is not there shall be noticed here.
        connection = Connection(self.socket, self.timeout_s)
        try:
            first = connection.call("subscribe", {"interval_s": interval_s}, self.timeout_s)
        except BaseException:
            connection.close()
            raise
        return self._documents(connection, _object(first, "subscribe"), interval_s)

    def start(
        self,
        run: str | None = None,
        *,
        duration_s: float | None = None,
        note: str | None = None,
        nuclide: str | None = None,
        half_life_s: float | None = None,
        branching_ratio: float | None = None,
        nuclide_source: str | None = None,
        activity_MBq: float | None = None,
        assay_utc: str | datetime | None = None,
        bed_mm: float | None = None,
        subject: str | None = None,
        keys: Mapping[str, str] | None = None,
        start_ticks: int | None = None,
        stop_ticks: int | None = None,
    ) -> dict[str, Any]:
        """Starts a run, by default until stop(), with a name that the daemon gives it. Returns ``run`` (its name), ``path``
        (its directory) and ``start_utc`` when it has started. ``assay_utc``: a datetime must have a time zone.
        ``half_life_s`` and ``branching_ratio``: of a nuclide that is missing in the table of petacqd."""
        if isinstance(assay_utc, datetime):
            if assay_utc.tzinfo is None:
                raise ValueError(f"assay_utc {assay_utc}: expected a time with a time zone")
            assay_utc = assay_utc.isoformat()
        answer = self.call(
            "start",
            run=run,
            duration_s=duration_s,
            note=note,
            nuclide=nuclide,
            half_life_s=half_life_s,
            branching_ratio=branching_ratio,
            nuclide_source=nuclide_source,
            activity_MBq=activity_MBq,
            assay_utc=assay_utc,
            bed_mm=bed_mm,
            subject=subject,
            keys=None if keys is None else dict(keys),
            start_ticks=start_ticks,
            stop_ticks=stop_ticks,
        )
        return _object(answer, "start")

    def stop(self, run: str | None = None, *, stop_ticks: int | None = None, timeout_s: float = 600.0) -> dict[str, Any]:
        """Stops the run, and returns when it is on disk: ``run``, ``prompts``, ``ledger_closed``, ``failure`` (None, or what
        failed) and so on. With ``run``, the daemon refuses if another run is in progress. After a time-out it still goes
        on to stop the run."""
        return _object(self.call("stop", timeout_s, run=run, stop_ticks=stop_ticks), "stop")

    def mark(self, text: str) -> dict[str, Any]:
        """Notes a text of 1 to 256 bytes in the run in progress. Returns ``run``, ``utc``, ``ticks`` (None before the data of
        the run) and ``text`` when it is on disk."""
        return _object(self.call("mark", text=text), "mark")

    def runs(self, limit: int | None = None) -> list[ListedRun]:
        """The latest ``limit`` runs in the data directory, by default all, in the order of their starts."""
        if limit is not None and limit < 1:
            raise ValueError(f"limit {limit}: expected 1 or more")
        found: list[ListedRun] = []
        while limit is None or len(found) < limit:
            wanted = _MOST_RUNS if limit is None else min(limit - len(found), _MOST_RUNS)
            page = _object(self.call("runs", limit=wanted, before=found[0].id if found else None), "runs")
            try:
                found[:0] = [ListedRun.from_json(entry, page["data_dir"]) for entry in page["runs"]]
                more = page["earlier"] > 0 and bool(page["runs"])
            except (KeyError, TypeError) as error:
                raise DaemonError(f"petacqd at {self.socket} answered with no list of runs: {error!r}") from error
            if not more:
                break
        return found

    def ledger(self, run: str | None = None) -> dict[str, Any]:
        """``run``, ``state`` and ``ledger`` of that run; by default of the run in progress, else of the last one."""
        return _object(self.call("ledger", run=run), "ledger")

    def _documents(self, connection: Connection, first: dict[str, Any], interval_s: float) -> Iterator[dict[str, Any]]:
        with connection:
            yield first
            while True:
                yield _object(connection.notification("status", interval_s + self.timeout_s), "status")


def _object(answer: Any, method: str) -> dict[str, Any]:
    if not isinstance(answer, dict):
        raise DaemonError(f"petacqd answered {method} with {answer!r:.60}: expected an object")
    return answer
