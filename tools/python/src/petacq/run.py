"""A run: the directory that petacqd writes."""

from __future__ import annotations

import html
import json
import os
import re
import warnings
from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from petacq.calibration import Calibration
from petacq.coverage import Coverage, said_start
from petacq.errors import CalibrationError, CoverageError, IncompleteWarning, RunError
from petacq.plm import Missing, PlmFile
from petacq.plm_files import PlmFiles, PlmSet
from petacq.rates import RunRates, rates_of
from petacq.run_state import state_of
from petacq.scanner import Scanner


def open_run(path: str | os.PathLike[str], verify: bool = False) -> Run:
    """Opens the run in that directory. With ``verify`` all its records are read and checked at once.

    Raises RunError for a directory that is no run, PlmError for list-mode that is damaged, OSError.
    """
    run = Run(path)
    if verify:
        records = run._records()
        records.verify()
        for part in (run.singles, run.triples, run.tags, run.seconds):
            if part is not None and part is not records:
                part.verify()
    return run


class Run:
    """One run. Its list-mode is opened on first use, and mapped, never read as a whole."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.is_dir():
            raise RunError(f"{self.path}: expected the directory of a run, found {_what_is(self.path)}")
        names = [entry.name for entry in self.path.iterdir()]
        kinds = ("coincidences", "singles", "triples", "tags", "seconds")
        self._parts = {kind: _parts(kind, names) for kind in kinds}
        if "run.json" not in names and not any(self._parts.values()):
            runs = sorted(name for name in names if os.path.isfile(self.path / name / "run.json"))
            hint = f"; it holds runs: {self.path / runs[0]}{', ...' if runs[1:] else ''}" if runs else ""
            raise RunError(f"{self.path}: not a run: neither run.json nor list-mode{hint}")

    def __repr__(self) -> str:
        return f"<Run {self.id!r} in {str(self.path)!r}, {self.state}>"

    # run.json

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """``run.json``. Raises RunError if it is missing or not JSON."""
        return self._json("run.json")

    @property
    def id(self) -> str:
        """The name of the run; without ``run.json`` that of its directory."""
        return str(self.metadata.get("run_id", self.path.name)) if self._has_metadata else self.path.name

    @property
    def state(self) -> str:
        """ "complete": the ledger closes and everything found was written. "interrupted": ``run.json`` says "running", but no
        daemon writes the run."""
        return state_of(self.path, str(self.metadata.get("state", "unknown"))) if self._has_metadata else "unknown"

    @property
    def note(self) -> str:
        """What the operator wrote at the start; may be empty."""
        return str(self.metadata.get("note") or "")

    @property
    def operator(self) -> dict[str, Any]:
        """What the operator said at the start ("nuclide", "nuclide_source", "activity_MBq", "assay_utc", "bed_mm", "subject",
        "keys") and what follows from it ("half_life_s", "branching_ratio", "activity_at_start_MBq"), each if it is known."""
        return self._part("operator", {})

    @property
    def ledger(self) -> dict[str, Any]:
        """What happened to every datagram, frame, single and pair (docs/reference/ledger.md). Empty during the run."""
        return self._part("ledger", {})

    @property
    def configuration(self) -> dict[str, Any]:
        """The configuration of the run, defaults included."""
        return self._part("configuration")

    @cached_property
    def scanner(self) -> Scanner:
        """The scanner description in ``run.json``. Raises RunError or ScannerError if there is none."""
        return Scanner.from_json(self._part("scanner"))

    # What its records cover

    @cached_property
    def coverage(self) -> Coverage:
        """When records could have been in the run, by which rules they were made, and what was lost. Raises CoverageError for
        files that do not belong together."""
        if self._parts["coincidences"] or self._parts["singles"]:
            return self._records().coverage
        try:
            return Coverage.of_run_json(self.metadata if self._has_metadata else {})
        except CoverageError as error:
            raise CoverageError(f"{self.path / 'run.json'}: {error}") from error

    @property
    def start(self) -> datetime | None:
        """UTC of the first recorded time; None if it is unknown."""
        return self.coverage.start or (said_start(self.metadata) if self._has_metadata else None)

    @property
    def stop(self) -> datetime | None:
        """UTC of the end of the recorded time; None if it is not known: during the run and after a crash."""
        return self.coverage.stop

    @property
    def start_ticks(self) -> int:
        """Detector time at which the records start."""
        if self.coverage.span:
            return self.coverage.span[0]
        return self.coverage.anchor[0] if self.coverage.anchor else self._first_and_last()[0]

    @property
    def stop_ticks(self) -> int:
        """Detector time at which the records stop; that of the last record while it is not known."""
        return self.coverage.span[1] if self.coverage.span else max(self._first_and_last()[1], self.start_ticks)

    @property
    def tick_s(self) -> float:
        """Seconds of one tick."""
        return self.scanner.tick_ps * 1e-12

    @property
    def duration_s(self) -> float:
        """Recorded detector time; that from the start to the last record while it is not known."""
        if self.coverage.intervals is not None:
            return self.coverage.duration_s
        return (self.stop_ticks - self.start_ticks) * self.tick_s

    # List-mode

    @cached_property
    def coincidences(self) -> PlmFile | PlmSet | PlmFiles:
        """All coincidences, from however many files. Raises RunError when there are none."""
        found = self._open("coincidences")
        if found is None:
            raise RunError(f"{self.path}: a run without coincidences")
        return found

    @cached_property
    def singles(self) -> PlmFile | PlmSet | PlmFiles | None:
        """All singles; None when the run has none (``listmode.write_singles``)."""
        return self._open("singles")

    @cached_property
    def triples(self) -> PlmFile | PlmSet | PlmFiles | None:
        """All triples: pairs with their gammas; None when the run has none (``gammas`` in the configuration)."""
        return self._open("triples")

    @cached_property
    def tags(self) -> PlmFile | PlmSet | PlmFiles | None:
        """All tags: triggers, gates, positions, dead time, clock; None when the run has none."""
        return self._open("tags")

    @cached_property
    def seconds(self) -> PlmFile | PlmSet | PlmFiles | None:
        """The seconds of the run: ``run.seconds["randoms"]`` is a number for each, ``run.seconds["crystal_prompts"]`` an
        array [second][crystal], ``run.seconds.records()`` all of it. docs/reference/seconds-format.md has the fields. None
        when the run has none."""
        return self._open("seconds")

    def rates(self) -> RunRates:
        """Singles, prompts, randoms and so on per second of detector time, for each second of the run. Raises RunError for a
        run without seconds."""
        if self.seconds is None:
            raise RunError(
                f"{self.path}: a run without seconds.plm: petlm resort makes one from singles; petacq.histograms.rates counts"
                " list-mode"
            )
        listmode = self.configuration.get("listmode", {}) if self._has_metadata else {}
        has_pairs = not (isinstance(listmode, Mapping) and listmode.get("write_coincidences") is False)
        coverage = self.coverage
        known = coverage.anchor is not None or coverage.span is not None
        start = coverage.reference if known else self.seconds.first_time or 0
        return rates_of(self.seconds, start, self.seconds.tick_ps * 1e-12, has_pairs)

    # Other files

    @cached_property
    def histograms(self) -> dict[str, Any]:
        """``histograms.json``: the singles converted during the run."""
        return self._json("histograms.json")

    @cached_property
    def ledger_over_time(self) -> dict[str, npt.NDArray[Any]]:
        """``ledger.csv`` by columns, one number for each row: ``from_ticks`` and ``to_ticks`` (u64), counters such as
        "datagrams.lost" (i64; f64 with NaN where it was not known). A last line that is cut off is left out."""
        path = self.path / "ledger.csv"
        head, *lines = path.read_text(encoding="ascii").split("\n")
        names = head.split(",")
        rows = [line.split(",") for line in lines[:-1]]
        if names[:2] != ["from_ticks", "to_ticks"] or any(len(row) != len(names) for row in rows):
            raise RunError(f"{path}: not the ledger of a run over time")
        columns: dict[str, npt.NDArray[Any]] = {}
        try:
            for name, *values in zip(names, *rows):
                if "" in values:
                    columns[name] = np.array([float(value or "nan") for value in values])
                else:
                    columns[name] = np.array(list(map(int, values)), "u8" if name.endswith("_ticks") else "i8")
        except ValueError as error:
            raise RunError(f"{path}: {error}") from None
        return columns

    @cached_property
    def marks(self) -> list[dict[str, Any]]:
        """What operators noted during the run: ``utc``, ``ticks`` (None before the data of the run) and ``text`` of each mark.
        A last line that is cut off is left out."""
        path = self.path / "marks.jsonl"
        if not path.exists():
            return []
        marks = []
        for line in path.read_bytes().split(b"\n"):
            try:
                mark = json.loads(line)
            except ValueError:
                continue
            if isinstance(mark, dict) and {"utc", "text"} <= mark.keys():
                marks.append(mark)
        return marks

    def calibration(self, path: str | os.PathLike[str] | None = None) -> Calibration:
        """The calibration that the run was taken with: by default from where ``run.json`` says it was.
        Raises CalibrationError when its SHA-256 is not the one of the run, and as ``Calibration.load``."""
        source = Path(path if path is not None else str(self.configuration.get("calibration", "")))
        calibration = Calibration.load(source, self.scanner)
        expected = self.metadata.get("calibration_sha256")
        if calibration.sha256 != expected:
            raise CalibrationError(
                f"{source}: not the calibration of the run: SHA-256 {calibration.sha256}, expected {expected}"
            )
        return calibration

    # Display in a notebook

    def summary(self) -> dict[str, str]:
        """The most important facts, as text."""
        lines = {"run": self.id, "state": self.state}
        if self._has_metadata:
            lines |= {"scanner": f"{self.scanner.name}, {self.scanner.crystal_count:,} crystals"}
            lines |= {"started": _time(self.start), "stopped": _time(self.stop)}
            if self.note:
                lines["note"] = self.note
            lines |= _said(self.operator)
            if self._parts["coincidences"] or self._parts["singles"]:
                lines["duration"] = f"{self.duration_s:,.3f} s of detector time"
        pairs = self.ledger.get("pairs") if self._has_metadata else None
        if isinstance(pairs, Mapping):
            lines["prompts"] = _figure(pairs.get("prompts_found"))
            lines["delayeds"] = _figure(pairs.get("delayeds_found"))
        for kind, names in self._parts.items():
            if names:
                part = getattr(self, kind)
                assert part is not None
                count = sum(len(of_part) for of_part in names.values())
                files = "" if count == 1 else f" in {count} files"
                lines[kind] = f"{len(part):,} records{files}{'' if part.complete else ', incomplete'}"
        return lines

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(key)}</th>"
            f"<td style='text-align:left'>{html.escape(text)}</td></tr>"
            for key, text in self.summary().items()
        )
        return f"<table>{rows}</table>"

    # Helpers

    @cached_property
    def _has_metadata(self) -> bool:
        return (self.path / "run.json").is_file()

    def _json(self, name: str) -> dict[str, Any]:
        path = self.path / name
        try:
            document = json.loads(path.read_bytes())
        except OSError as error:
            raise RunError(f"{path}: cannot be read: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            raise RunError(f"{path}: not JSON: {error}") from error
        if not isinstance(document, dict):
            raise RunError(f"{path}: not a JSON object")
        return document

    def _part(self, key: str, default: dict[str, Any] | None = None) -> dict[str, Any]:
        part = self.metadata.get(key, default)
        if not isinstance(part, dict):
            raise RunError(f"{self.path / 'run.json'}: expected an object {key!r}")
        return part

    def _records(self) -> PlmFile | PlmSet | PlmFiles:
        """The coincidences, or the singles of a run that has only these."""
        singles = None if self._parts["coincidences"] else self.singles
        return self.coincidences if singles is None else singles

    def _first_and_last(self) -> tuple[int, int]:
        records = self._records()
        return (records.first_time or 0, records.last_time or 0)

    def _open(self, kind: str) -> PlmFile | PlmSet | PlmFiles | None:
        names = self._parts[kind]
        files = [self._open_part(of_part) for of_part in names.values()]
        for file in files:
            if file.kind != kind:
                raise RunError(f"{file.path}: holds {file.kind}")
        missing = [
            Missing(
                self.path / f"{kind}-{first:04d}.plm",
                None,
                0,
                f"part {first}{_up_to(first, last)} of the run is not there",
            )
            for first, last in _gaps([number for number in names if number > 0], 2 if 0 in names else 1)
        ]
        for part in missing:
            warnings.warn(IncompleteWarning(str(part)), stacklevel=3)
        if not files:
            return None
        return files[0] if len(files) == 1 and not missing else PlmFiles(files, missing)

    def _open_part(self, names: dict[int, str]) -> PlmFile | PlmSet:
        if 0 not in names:
            part = PlmSet({number: self.path / name for number, name in names.items()})
            for missing in part.missing:
                if missing.offset is None:  # otherwise the file has warned
                    warnings.warn(IncompleteWarning(str(missing)), stacklevel=4)
            return part
        if len(names) > 1:
            raise RunError(f"{self.path}: holds {names[0]} and files of a set of that name; expected one or the other")
        return PlmFile(self.path / names[0])


def _parts(kind: str, names: list[str]) -> dict[int, dict[int, str]]:
    """Its files by part and by number in their set; 0 stands for no number. Files made by ``petlm recover`` do not
    match."""
    pattern = re.compile(rf"{kind}(?:-(\d+))?(?:\.([1-9]\d?))?\.plm")
    found: dict[int, dict[int, str]] = {}
    for name in names:
        if match := pattern.fullmatch(name):
            found.setdefault(int(match[1] or 0), {})[int(match[2] or 0)] = name
    return dict(sorted(found.items()))


def _gaps(numbers: list[int], first: int) -> list[tuple[int, int]]:
    """The missing ranges between ``first`` and the last number; the numbers ascend."""
    before = [first - 1, *numbers]
    return [(low + 1, high - 1) for low, high in zip(before, numbers) if high > low + 1]


def _what_is(path: Path) -> str:
    if not path.exists():
        return "nothing"
    return "a file of that run: petacq.PlmFile opens it" if path.suffix == ".plm" else "a file"


def _said(operator: dict[str, Any]) -> dict[str, str]:
    """The operator's data by their names in a summary."""
    units = {"activity_MBq": " MBq", "activity_at_start_MBq": " MBq", "bed_mm": " mm"}
    names = {
        "subject": "subject",
        "nuclide": "nuclide",
        "nuclide_source": "source of its values",
        "activity_MBq": "activity at the assay",
        "assay_utc": "time of the assay",
        "activity_at_start_MBq": "activity at the start",
        "bed_mm": "bed position",
    }
    lines = {}
    for key, name in names.items():
        value = operator.get(key)
        if value is not None:
            lines[name] = (f"{value:g}" if isinstance(value, float) else str(value)) + units.get(key, "")
    keys = operator.get("keys")
    if isinstance(keys, Mapping):
        lines |= {str(key): str(value) for key, value in keys.items()}
    return lines


def _time(when: datetime | None) -> str:
    return "unknown" if when is None else when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _up_to(first: int, last: int) -> str:
    return f" to {last}" if last > first else ""


def _figure(number: Any) -> str:
    return f"{number:,}" if isinstance(number, int) else "unknown"
