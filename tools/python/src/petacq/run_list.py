"""The runs in a data directory."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from petacq.coverage import Coverage, said_start
from petacq.coverage_1_0 import utc
from petacq.errors import CoverageError, RunError
from petacq.run import Run, open_run
from petacq.run_state import state_of


@dataclass(frozen=True)
class ListedRun:
    """A run, as ``petctl runs --json`` lists it. None: not known, or the run writes no such records."""

    id: str
    path: Path
    #: "running", "complete", "failed", "bad-ledger", "interrupted", "recovered" or "unreadable".
    state: str | None
    start: datetime | None  #: UTC
    stop: datetime | None
    duration_s: float | None  #: recorded detector time
    prompts: int | None
    delayeds: int | None
    singles: int | None
    triples: int | None
    delayed_triples: int | None
    reason: str | None  #: why it stopped, or why it cannot be read
    ledger_closed: bool | None
    bytes: int  #: of its files

    def open(self, verify: bool = False) -> Run:
        """As petacq.open_run."""
        return open_run(self.path, verify)

    @classmethod
    def from_json(cls, entry: Mapping[str, Any], data_dir: str | os.PathLike[str]) -> Self:
        """An entry of the answer to the control method ``runs`` (docs/reference/control.md)."""
        return cls(
            id=str(entry["run"]),
            path=Path(data_dir) / str(entry["run"]),
            state=entry["state"],
            start=utc(entry["start_utc"]),
            stop=utc(entry["stop_utc"]),
            duration_s=entry["seconds"],
            prompts=entry["prompts"],
            delayeds=entry["delayeds"],
            singles=entry["singles"],
            triples=entry["triples"],
            delayed_triples=entry["delayed_triples"],
            reason=entry["reason"],
            ledger_closed=entry["ledger_closed"],
            bytes=int(entry["bytes"]),
        )


def list_runs(directory: str | os.PathLike[str]) -> list[ListedRun]:
    """The runs in a data directory, in the order of their starts: every folder with a ``run.json``, also one that cannot be
    read, whose state is "unreadable". A folder into which the user may not look is left out. Asks no daemon. Raises RunError
    if the directory cannot be read or is itself a run."""
    try:
        if os.path.isfile(Path(directory) / "run.json"):
            raise RunError(f"{directory}: is a run itself: petacq.open_run opens it, its parent directory lists it")
        # Unlike Path.is_file(), isfile() is False behind a directory that is closed to the user, such as lost+found.
        folders = [entry for entry in Path(directory).iterdir() if os.path.isfile(entry / "run.json")]
    except OSError as error:
        raise RunError(f"{directory}: expected a directory with runs: {error.strerror}") from error
    listed = [_listed(folder) for folder in folders]
    return sorted(listed, key=lambda run: (run.start.timestamp() if run.start else float("-inf"), run.id))


def _listed(folder: Path) -> ListedRun:
    size = 0
    try:
        size = sum(map(_size, folder.iterdir()))
        run = json.loads((folder / "run.json").read_bytes())
        if not isinstance(run, dict):
            raise ValueError("not a JSON object")
    except (OSError, ValueError, RecursionError) as error:
        why = f"{folder / 'run.json'}: {error}"
        return ListedRun(
            folder.name, folder, "unreadable", None, None, None, None, None, None, None, None, why, None, size
        )
    try:
        coverage = Coverage.of_run_json(run)
    except CoverageError:
        coverage = Coverage(0)
    state = _value(run, "state")
    pairs = _value(run, "configuration", "listmode", "write_coincidences") is not False
    singles = _value(run, "configuration", "listmode", "write_singles") is True
    triples = pairs and isinstance(_value(run, "configuration", "gammas"), dict)
    return ListedRun(
        id=folder.name,
        path=folder,
        state=state_of(folder, state) if isinstance(state, str) else None,
        start=_to_ms(said_start(run)),
        stop=_to_ms(coverage.stop),
        duration_s=coverage.duration_s if coverage.intervals is not None else None,
        prompts=_value(run, "ledger", "pairs", "prompts_found") if pairs else None,
        delayeds=_value(run, "ledger", "pairs", "delayeds_found") if pairs else None,
        singles=_value(run, "ledger", "saved_singles", "found") if singles else None,
        triples=_value(run, "ledger", "gammas", "triples") if triples else None,
        delayed_triples=_value(run, "ledger", "gammas", "delayed") if triples else None,
        reason=_value(run, "stop_reason"),
        ledger_closed=_value(run, "ledger", "closed"),
        bytes=size,
    )


def _to_ms(when: datetime | None) -> datetime | None:
    """As petctl runs tells it."""
    return when and when.replace(microsecond=when.microsecond // 1000 * 1000)


def _size(path: Path) -> int:
    """0 for what is no file, or no longer: the daemon writes and renames files beside those that it replaces."""
    with contextlib.suppress(OSError):
        status = path.stat()
        return status.st_size if stat.S_ISREG(status.st_mode) else 0
    return 0


def _value(document: Any, *keys: str) -> Any:
    for key in keys:
        document = document.get(key) if isinstance(document, Mapping) else None
    return document
