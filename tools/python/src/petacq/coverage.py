"""What a file of records covers: when a record could have been in it, by which rules its records were made, and where they
come from. docs/reference/coverage.md of petacqd describes the JSON form."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Self, TypeGuard

from petacq.coverage_1_0 import (
    EPOCH,
    Ticks,
    anchor_of_1_0,
    intervals_of_1_0,
    joined,
    member,
    object_of,
    recorded_by_1_0,
    rules_of_1_0,
    utc,
    whole_number,
)
from petacq.errors import CoverageError, UnknownWarning

#: Phrases of ``Coverage.unknown``, of files that were imported.
UNKNOWN_ENERGIES = "the energies of its photons (0 in each record)"
UNKNOWN_DT = "the time between the photons of its pairs (0 in each record)"

_VERSION = 1
_MOST_TICK_PS = 1e9  # as in the description of a scanner
_MOST_HALF_LIVES = 1000  # a double holds the activity before and after so many
_LAST_TICK = (1 << 64) - 1
_LAST_NS = 9_000_000_000_000_000_000  # since 1970; the clock of the programs holds little more

@dataclass(frozen=True)
class StatedActivity:
    """The source, as the operator stated it."""

    nuclide: str
    half_life_s: float
    branching_ratio: float  #: positrons per decay
    activity_MBq: float | None = None
    assay: datetime | None = None  #: time of the activity, UTC


@dataclass(frozen=True)
class OriginRun:
    """A run whose records are in the file."""

    run_id: str
    directory: Path | None  #: where it was when the file was made


@dataclass(frozen=True)
class Coverage:
    """What a file of records covers. All parts of a run have the same reference."""

    tick_ps: float
    #: In which a record could have been in the file: in order, without overlaps. None: not known, or not yet.
    intervals: tuple[Ticks, ...] | None = None
    #: Of a file of petacqd 1.0 that says for how long, but not when, records were taken within the intervals.
    open_ticks: int | None = None
    #: The start of the run: its tick and its UTC in nanoseconds since 1970. None: the time of day is not known.
    anchor: tuple[int, int] | None = None
    activity: StatedActivity | None = None
    #: The section ``coincidence`` of the configuration by which the records were made; empty: none, or not known.
    coincidence: Mapping[str, Any] = field(default_factory=dict)
    #: The section ``energy``; empty: none, or not known.
    energy: Mapping[str, Any] = field(default_factory=dict)
    #: The section ``gammas``; empty: none.
    gammas: Mapping[str, Any] = field(default_factory=dict)
    #: Mean share of the data of the boards that arrived, from 0 to 1; None: not known.
    live: float | None = None
    #: The seconds of the run cover all intervals.
    seconds_complete: bool = True
    runs: tuple[OriginRun, ...] = ()
    calibration_sha256: str | None = None
    scanner_sha256: str | None = None
    #: What a file of petacqd 1.0, or one that was imported, does not tell, a phrase each.
    unknown: tuple[str, ...] = ()

    @property
    def rules(self) -> dict[str, Mapping[str, Any]]:
        """The sections ``coincidence``, ``energy`` and ``gammas`` of the configuration by which the records were made."""
        return {"coincidence": self.coincidence, "energy": self.energy, "gammas": self.gammas}

    @property
    def tick_s(self) -> float:
        return self.tick_ps * 1e-12

    @property
    def ticks(self) -> int:
        """Recorded time; 0 if it is not known."""
        if self.open_ticks is not None:
            return self.open_ticks
        return _length(self)

    @property
    def duration_s(self) -> float:
        """Recorded time in seconds of the detector clock; 0 if it is not known."""
        return self.ticks * self.tick_s

    @property
    def span(self) -> Ticks | None:
        """From the first to the last recorded time; None if they are not known or nothing was recorded."""
        return (self.intervals[0][0], self.intervals[-1][1]) if self.intervals else None

    @property
    def reference(self) -> int:
        """The tick from which seconds are counted and to which decay is corrected: the start of the run or, if that is not
        known, the first recorded time."""
        if self.anchor is not None:
            return self.anchor[0]
        return self.span[0] if self.span else 0

    def since_reference_s(self, ticks: int) -> float:
        """Seconds from the reference to a tick; negative before it."""
        return (int(ticks) - self.reference) * self.tick_s

    def utc_of(self, ticks: int) -> datetime | None:
        """None without an anchor, or if no clock holds it."""
        if self.anchor is None:
            return None
        try:
            return EPOCH + timedelta(microseconds=self.anchor[1] / 1000, seconds=self.since_reference_s(ticks))
        except OverflowError:
            return None

    @property
    def start(self) -> datetime | None:
        """UTC of the first recorded time, or, if that is not known, of the start of the run."""
        return self.utc_of(self.span[0] if self.span else self.reference)

    @property
    def stop(self) -> datetime | None:
        """UTC of the end of the recorded time; None if it is not known."""
        return self.utc_of(self.span[1]) if self.span else None

    def decay_factor(self, half_life_s: float | None = None) -> float:
        """Activity at the reference divided by its mean over the recorded time; 1 if that is not known. ``half_life_s``: by
        default that of the stated activity."""
        if half_life_s is None:
            half_life_s = self.activity.half_life_s if self.activity else 0
        if not self.intervals or not half_life_s > 0:
            return 1.0
        per_s = math.log(2) / half_life_s
        length = decayed = 0.0
        for start, end in self.intervals:
            seconds = (end - start) * self.tick_s
            length += seconds
            half_lives = self.since_reference_s(start) / half_life_s
            if half_lives < -_MOST_HALF_LIVES:
                return 0.0
            decayed += math.exp2(-half_lives) * -math.expm1(-per_s * seconds) / per_s
        return length / decayed if decayed > 0 else math.inf

    # Its forms

    @classmethod
    def of(cls, description: Mapping[str, Any], run: Mapping[str, Any] | None = None, whole_run: bool = False) -> Self:
        """That of a file with this description. Files of petacqd 1.0 say less: ``run`` is ``run.json`` of the run,
        ``whole_run`` says that the file is all that the run has of its kind. Raises CoverageError for what is no coverage."""
        if "coverage" in description:
            return cls.from_json(description["coverage"])
        return cls._of_1_0(description, run or {}, whole_run)

    @classmethod
    def of_run_json(cls, run: Mapping[str, Any]) -> Self:
        """That of a run as a whole, from its ``run.json`` alone."""
        if "coverage" in run:
            return cls.from_json(run["coverage"])
        return cls.of({"tick_ps": member(member(run, "scanner"), "tick_ps")}, run, True)

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Raises CoverageError for what is no coverage."""
        if member(document, "version") != _VERSION:
            raise CoverageError(f"coverage: expected version {_VERSION}, found {member(document, 'version')!r}")
        try:
            anchor, said = object_of(document, "anchor"), object_of(document, "activity")
            rules, loss, origin = (object_of(document, key) for key in ("rules", "loss", "origin"))
            listed = document.get("intervals")
            return cls(
                tick_ps=_number(document.get("tick_ps"), "tick_ps", _MOST_TICK_PS),
                intervals=None if listed is None else _intervals(listed),
                open_ticks=whole_number(document.get("open_ticks")),
                anchor=(_whole(anchor, "ticks", _LAST_TICK), _whole(anchor, "unix_ns", _LAST_NS)) if anchor else None,
                activity=_activity(said, _utc_of_ns(said.get("assay_unix_ns"))),
                coincidence=object_of(rules, "coincidence"),
                energy=object_of(rules, "energy"),
                gammas=object_of(rules, "gammas"),
                live=None if loss.get("live") is None else _number(loss["live"], "live", 1),
                seconds_complete=loss.get("seconds_complete", True) is True,
                runs=tuple(_origin(run) for run in origin.get("runs") or ()),
                calibration_sha256=origin.get("calibration_sha256"),
                scanner_sha256=origin.get("scanner_sha256"),
                unknown=tuple(map(str, document.get("unknown") or ())),
            )
        except ValueError as error:
            raise CoverageError(f"coverage: {error}") from error
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise CoverageError(f"coverage: {error!r}") from error

    @classmethod
    def _of_1_0(cls, description: Mapping[str, Any], run: Mapping[str, Any], whole_run: bool) -> Self:
        tick_ps = description.get("tick_ps")
        tick_ps = float(tick_ps) if isinstance(tick_ps, (int, float)) and 0 <= tick_ps <= _MOST_TICK_PS else 0.0
        unknown: list[str] = []
        coincidence, energy = rules_of_1_0(description, run, unknown)
        said = description.get("operator")
        said = said if isinstance(said, Mapping) else object_of(run, "operator")
        recorded = recorded_by_1_0(run, tick_ps)
        anchor = anchor_of_1_0(run, recorded[0], tick_ps) if recorded else None
        intervals, open_ticks = intervals_of_1_0(description, recorded, whole_run)
        if intervals is None:
            unknown.append("when its records were taken, and for how long")
        if anchor is None:
            unknown.append("the time of day")
        run_id = description.get("run_id")
        return cls(
            tick_ps=tick_ps,
            intervals=intervals,
            open_ticks=open_ticks,
            anchor=anchor,
            activity=_activity(said, utc(said.get("assay_utc"))),
            coincidence=coincidence,
            energy=energy,
            runs=(OriginRun(run_id, None),) if isinstance(run_id, str) and run_id else (),
            calibration_sha256=member(run, "calibration_sha256") or None,
            unknown=tuple(unknown),
        )


def united(parts: Sequence[Coverage]) -> Coverage:
    """That of the records of all parts of a run. Raises CoverageError if they do not belong together."""
    whole = parts[0]
    for part in parts[1:]:
        if (part.tick_ps, part.rules) != (whole.tick_ps, whole.rules):
            raise CoverageError("coverage: parts with different ticks or rules")
        intervals = None
        if whole.intervals is not None and part.intervals is not None:
            intervals = joined((*whole.intervals, *part.intervals))
            if sum(end - start for start, end in intervals) != _length(whole) + _length(part):
                raise CoverageError("coverage: two parts cover the same time")
        anchors = [one.anchor for one in (whole, part) if one.anchor is not None]
        whole = replace(
            whole,
            intervals=intervals,
            open_ticks=None if whole.open_ticks is part.open_ticks is None else whole.ticks + part.ticks,
            anchor=min(anchors, default=None),
            live=_mean_live(whole, part),
            seconds_complete=whole.seconds_complete and part.seconds_complete,
            runs=tuple(dict.fromkeys((*whole.runs, *part.runs))),
            unknown=tuple(dict.fromkeys((*whole.unknown, *part.unknown))),
        )
    return whole


def _length(of: Coverage) -> int:
    return sum(end - start for start, end in of.intervals or ())


def _mean_live(a: Coverage, b: Coverage) -> float | None:
    if a.live is None or b.live is None or a.intervals is None or b.intervals is None:
        return None
    ticks = a.ticks + b.ticks
    return (a.live * a.ticks + b.live * b.ticks) / ticks if ticks else 1.0


def coverage_of_file(path: Path, description: Mapping[str, Any], run: Mapping[str, Any], whole_run: bool) -> Coverage:
    """``Coverage.of``, with errors that name the file, and a warning about what a file of petacqd 1.0, or one that was imported, does not
    tell."""
    try:
        coverage = Coverage.of(description, run, whole_run)
    except CoverageError as error:
        raise CoverageError(f"{path}: {error}") from error
    if coverage.unknown:
        warnings.warn(UnknownWarning(f"{path}: does not tell {', '.join(coverage.unknown)}"), stacklevel=3)
    return coverage


def run_json_near(file: Path, run_id: Any) -> dict[str, Any]:
    """``run.json`` beside the file or one directory above it, as for the phases of ``petlm gate``, if it names this run;
    otherwise empty."""
    for folder in (file.absolute().parent, file.absolute().parent.parent):
        try:
            document = json.loads((folder / "run.json").read_bytes())
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(document, dict) and document.get("run_id") == run_id:
            return document
    return {}


def said_start(run: Mapping[str, Any]) -> datetime | None:
    """The start that ``run.json`` of a run says, also of a run in progress."""
    try:
        start = Coverage.of_run_json(run).start
    except CoverageError:
        start = None
    return start or utc(run.get("start_utc"))


# JSON


def _number(found: Any, name: str, most: float) -> float:
    if isinstance(found, bool) or not isinstance(found, (int, float)) or not 0 <= found <= most:
        raise ValueError(f"{name}: expected a number from 0 to {most:g}, found {found!r}")
    return float(found)


def _whole(holder: Mapping[str, Any], name: str, most: int) -> int:
    found = whole_number(holder.get(name))
    if found is None or found > most:
        raise ValueError(f"{name}: expected a whole number from 0 to {most}, found {holder.get(name)!r}")
    return found


def _intervals(document: Any) -> tuple[Ticks, ...]:
    intervals = []
    for start, end in document:
        if whole_number(start) is None or whole_number(end) is None or not start <= end <= _LAST_TICK:
            raise ValueError(f"expected an interval of two ticks, [start, end], found {[start, end]}")
        intervals.append((start, end))
    return joined(intervals)


def _utc_of_ns(ns: Any) -> datetime | None:
    return EPOCH + timedelta(microseconds=ns / 1000) if whole_number(ns) is not None and ns <= _LAST_NS else None


def _activity(said: Mapping[str, Any], assay: datetime | None) -> StatedActivity | None:
    nuclide, half_life_s, branching_ratio = (said.get(key) for key in ("nuclide", "half_life_s", "branching_ratio"))
    if not isinstance(nuclide, str) or not _above_0(half_life_s) or not _above_0(branching_ratio):
        return None
    activity = said.get("activity_MBq")
    return StatedActivity(
        nuclide, float(half_life_s), float(branching_ratio), float(activity) if _above_0(activity) else None, assay
    )


def _above_0(number: Any) -> TypeGuard[int | float]:
    return isinstance(number, (int, float)) and number > 0


def _origin(run: Mapping[str, Any]) -> OriginRun:
    directory = run.get("directory")
    return OriginRun(str(run["run_id"]), Path(directory) if directory else None)
