"""The live tap: a sample of the records of the run in progress, as NumPy arrays.

>>> for records in petacq.tap(kind="coincidences", prescale=10):
...     print(records["energy_a"].mean())
"""

from __future__ import annotations

import contextlib
import json
import operator
import os
import socket
import struct
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Literal, SupportsIndex

import numpy as np

from petacq.daemon import Daemon
from petacq.errors import TapError
from petacq.layout import Records

_HEADER = struct.Struct("<8sIIQQQQQQ")
_MAGIC = b"PETACQTP"
_RUN_STARTED, _RECORDS, _RUN_ENDED = 1, 2, 3
_VERSION = 1
_LONGEST_LINE = 65536


class Tap:
    """An open connection to the tap of a daemon. Iterate over it: each array has every N-th record of a stretch of
    the run, with the fields of list-mode. An array is yours: no later one changes it.

    The daemon never waits for its clients. What a client is too slow for is missing from the stream, and counted in
    ``dropped``. One thread uses it.
    """

    #: What the daemon said: scanner, crystals, tick_ps, fields, ...
    description: dict[str, Any]
    kind: str
    #: The records whose numbers in the run are multiples of it are in the stream.
    prescale: int
    dtype: np.dtype[np.void]
    #: Id of the run that the latest array belongs to; None before the first run.
    run: str | None
    #: 1, 2, ... since the daemon started; 0 before the first run.
    run_number: int
    #: Whether that run is still in progress.
    running: bool
    #: Number, in the run, of the first record of the latest array; the next one has this number plus ``prescale``.
    first_record: int
    #: Records that were chosen for this client, which was too slow to take them.
    dropped: int

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        kind: Literal["coincidences", "singles", "triples"] = "coincidences",
        prescale: SupportsIndex = 1,
        *,
        one_run: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Connects to the socket of ``tap.socket``.

        path: None: as the status of the daemon tells it, which is asked as Daemon() does.
        one_run: iteration ends when a run has ended; otherwise it continues with the next run.
        timeout: seconds without any message after which iteration raises TimeoutError, and the connection is closed;
        None: waits for ever.

        Raises OSError if nobody listens there, TapError if the daemon has no tap or refuses the request.
        """
        self._path = _path_of_daemon() if path is None else os.fspath(path)
        self._one_run = one_run
        self.run, self.run_number, self.running = None, 0, False
        self.first_record, self.dropped = 0, 0
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(timeout)
            try:
                self._socket.connect(self._path)
            except OSError as error:
                error.filename = self._path  # that of a socket is not in its message
                raise
            request = {"kind": kind, "prescale": operator.index(prescale)}
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it may have said why before it closed
                self._socket.sendall(json.dumps(request).encode() + b"\n")
            self._stream = self._socket.makefile("rb")
            self._read_answer()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Idempotent."""
        if hasattr(self, "_stream"):
            self._stream.close()
        self._socket.close()

    def __enter__(self) -> Tap:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[Records]:
        """Ends when the daemon does, or with the run if ``one_run``; the connection is then closed. It stays open if
        the loop is left earlier: another loop continues with the next records."""
        while True:
            try:
                header = self._read(_HEADER.size)
                if not header:
                    break
                magic, what, payload_bytes, number, first, records, _, _, dropped = _HEADER.unpack(header)
                if magic != _MAGIC:
                    raise self._broken(f"expected a message that begins with {_MAGIC!r}, found {magic!r}")
                payload = self._read(payload_bytes)
                if len(payload) != payload_bytes:
                    raise self._broken("it ended within a message")
            except BaseException:
                self.close()
                raise
            self.dropped = dropped
            if what == _RUN_STARTED:
                self.run, self.run_number, self.running = payload.decode("utf-8", "replace"), number, True
            elif what == _RUN_ENDED:
                self.running = False
                if self._one_run:
                    break
            elif what == _RECORDS:
                if payload_bytes != records * self.dtype.itemsize:
                    self.close()
                    raise self._broken(f"expected {records * self.dtype.itemsize} bytes, found {payload_bytes}")
                self.first_record = first
                yield np.frombuffer(payload, self.dtype)
        self.close()

    def _read(self, size: int) -> bytearray:
        """As many bytes; fewer if the connection ends. Writable, so that the array is."""
        data = bytearray(size)
        view = memoryview(data)
        have = 0
        while have < size:
            got = self._stream.readinto(view[have:])
            if not got:
                break
            have += got
        view.release()
        if 0 < have < size == _HEADER.size:
            raise self._broken("it ended within a message")
        del data[have:]
        return data

    def _read_answer(self) -> None:
        try:
            line = self._stream.readline(_LONGEST_LINE)
        except ConnectionResetError:
            line = b""
        if not line.endswith(b"\n"):
            raise self._broken("expected an answer, but the daemon closed it")
        try:
            answer = json.loads(line)
        except ValueError as error:
            raise self._broken(f"expected a line of JSON, found {line[:40]!r}") from error
        if not isinstance(answer, dict):
            raise self._broken(f"expected a JSON object, found {line[:40]!r}")
        if isinstance(answer.get("error"), str):
            raise TapError(f"{self._path}: {answer['error']}")
        if answer.get("format") != "petacqd tap" or answer.get("version") != _VERSION:
            raise self._broken(
                f"expected version {_VERSION} of the petacqd tap, "
                f"found {answer.get('format')!r}, version {answer.get('version')!r}"
            )
        self.description = answer
        try:
            self.kind, self.prescale, record_bytes = answer["kind"], answer["prescale"], answer["record_bytes"]
            self.dtype = np.dtype([(name, kind) for name, kind in answer["fields"]])
        except (KeyError, TypeError, ValueError) as error:
            raise self._broken(f"expected a description of the records: {error!r}") from error
        if self.dtype.itemsize != record_bytes:
            raise self._broken(f"expected records of {record_bytes} bytes, found {self.dtype}")

    def _broken(self, what: str) -> TapError:
        return TapError(f"{self._path}: {what}")


def _path_of_daemon() -> str:
    daemon = Daemon()
    path = (daemon.status().get("tap") or {}).get("socket")
    if not isinstance(path, str):
        raise TapError(f"{daemon.socket}: this daemon tells of no tap: is tap.socket in its configuration?")
    return path


def tap(
    path: str | os.PathLike[str] | None = None,
    kind: Literal["coincidences", "singles", "triples"] = "coincidences",
    prescale: SupportsIndex = 1,
    *,
    one_run: bool = False,
    timeout: float | None = None,
) -> Tap:
    """Connects to the live tap of a daemon; see Tap."""
    return Tap(path, kind, prescale, one_run=one_run, timeout=timeout)
