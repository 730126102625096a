"""The time blocks that a PETSIRD file of a run must have beside those of events: singles, dead time, signals, bed positions, angles of
the scanner."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from petacq.coverage_1_0 import joined
from petacq.errors import PetacqError
from petacq.layout import Records
from petacq.petsird_events import Bins, Options, ceil_ms, floor_ms
from petacq.run import Run
from petacq.scanner.arrangement import Integers
from petacq.scanner.rotation import Rotation, rotation_of

TRIGGER, GATE, POSITION, DEAD_TIME, CLOCK = range(5)
_NAMES = {TRIGGER: "trigger", GATE: "gate, 1 open", POSITION: "position, mm", CLOCK: "clock"}
#: The types of signals in PETSIRD.
SIGNAL_TYPES = (
    *("ECG_TRACE", "ECG_TRIGGER", "RESP_TRACE", "RESP_TRIGGER", "OTHER_MOTION_SIGNAL", "OTHER_MOTION_TRIGGER"),
    *("EXTERNAL_SYNC", "MR_PULSE_START", "OTHER"),
)
#: Radians: the scanner stands still in PETSIRD until it has turned by this.
_GANTRY_STEP = np.radians(0.5)


#: Seconds are joined with a neighbour where whole milliseconds would change their rates by more.
_MOST_ROUNDING = 2e-3


@dataclass(frozen=True)
class Second:
    """The counts of an interval, mostly a second."""

    begin_ms: int
    end_ms: int
    singles: npt.NDArray[Any] | None = None  #: [crystal]: counts
    alive: npt.NDArray[Any] | None = None  #: [crystal]: share of the interval in which it could detect


@dataclass(frozen=True)
class Signal:
    """The tags of a channel and a kind."""

    id: int
    type: str  #: its name in PETSIRD's ExternalSignalTypeEnum
    description: str
    begin_ms: Integers
    end_ms: Integers  #: until when the value holds: up to the next one. A trigger ends when it begins.
    values: npt.NDArray[np.float32]


@dataclass(frozen=True)
class BedPosition:
    begin_ms: int
    end_ms: int
    z_mm: float


@dataclass(frozen=True)
class GantryAngle:
    """Of a scanner that turns."""

    begin_ms: int
    end_ms: int
    radians: float


@dataclass
class Extras:
    """What a file holds beside events."""

    seconds: Iterable[Second] = ()
    singles: bool = False  #: the seconds have counts of singles
    signals: Sequence[Signal] = ()
    bed: Sequence[BedPosition] = ()
    gantry: Sequence[GantryAngle] = ()


def extras_of(run: Run, options: Options, bins: Bins) -> Extras:
    extras = Extras()
    tags = run.tags.records() if run.tags is not None else None
    rotation = rotation_of(run.scanner)
    if rotation and options.only_events:
        raise PetacqError("--only-events: the scanner turns, and its angles are not in the blocks of events")
    extras.gantry = _gantry(rotation, tags, bins)
    if options.only_events:
        return extras
    if (of_run := run.seconds) is not None:
        seconds = _SecondsOfRun(of_run, bins, run.scanner.bdm(np.arange(run.scanner.crystal_count)))
        if seconds.cover_all:
            extras.seconds, extras.singles = seconds, True
    if tags is not None and len(tags):
        extras.signals = _signals(tags, options, bins, bins.end_ms)
    extras.bed = _bed(run, tags, options, bins, bins.end_ms)
    return extras


@dataclass(frozen=True)
class _Span:
    """Seconds that follow one another, as one interval."""

    start: int  # ticks
    end: int
    begin_ms: int
    end_ms: int
    first: int  # number of the first second in the run
    last: int


@dataclass(frozen=True)
class _SecondsOfRun:
    """From the records by the second of a run: singles in windows alone and with others, and dead time by module."""

    records: Any
    bins: Bins
    module: Integers  # [crystal]

    @cached_property
    def spans(self) -> list[_Span]:
        """The intervals that have counts: those of every second in which the run covers something."""
        seconds = []
        number = 0
        for block in self.records.blocks():
            for start, length in zip(block["start"].tolist(), block["length"].tolist()):
                start, end = max(start, self.bins.start_ticks), start + length
                if any(start < r.end and r.start < end for r in self.bins.ranges):
                    seconds.append((start, end, number))
                number += 1
        out: list[_Span] = []
        for k, (start, end, number) in enumerate(seconds):
            is_followed = k + 1 < len(seconds) and seconds[k + 1][0] == end
            span = self._span(start, end, number, number, is_followed)
            if out and out[-1].end == start and (self._is_rounded(out[-1]) or self._is_rounded(span)):
                before = out.pop()
                span = self._span(before.start, end, before.first, number, is_followed)
            out.append(span)
        return out

    def _span(self, start: int, end: int, first: int, last: int, is_followed: bool) -> _Span:
        begin_ms = floor_ms(start - self.bins.start_ticks, self.bins.ms_per_tick)
        to_ms = floor_ms if is_followed else ceil_ms
        return _Span(start, end, begin_ms, to_ms(end - self.bins.start_ticks, self.bins.ms_per_tick), first, last)

    def _is_rounded(self, span: _Span) -> bool:
        exact = (span.end - span.start) * self.bins.ms_per_tick
        return abs(span.end_ms - span.begin_ms - exact) > _MOST_ROUNDING * exact

    @property
    def cover_all(self) -> bool:
        """No time block of events lies outside of them."""
        covered = joined([(span.begin_ms, span.end_ms) for span in self.spans])
        return all(any(b <= r.begin_ms and r.end_ms <= e for b, e in covered) for r in self.bins.ranges)

    @cached_property
    def has_dead_time(self) -> bool:
        """Any module reported it in any second."""
        return any(not np.isnan(block["module_dead_time"]).all() for block in self.records.blocks())

    def __iter__(self) -> Iterator[Second]:
        seconds = enumerate(second for block in self.records.blocks() for second in block)
        for span in self.spans:
            members = []
            for number, second in seconds:
                if number >= span.first:
                    members.append(second)
                if number == span.last:
                    break
            singles = sum(s["crystal_unpaired"].astype(np.uint64) + s["crystal_grouped"] for s in members)
            yield Second(span.begin_ms, span.end_ms, singles, self._alive(members))

    def _alive(self, seconds: list[Any]) -> npt.NDArray[np.float64] | None:
        if not self.has_dead_time:
            return None
        blind = sum(np.nan_to_num(second["module_dead_time"]) for second in seconds)  # NaN: unknown
        share: npt.NDArray[np.float64] = 1 - blind / sum(float(second["length"]) for second in seconds)
        return share[self.module]


def _signals(tags: Records, options: Options, bins: Bins, end_ms: int) -> list[Signal]:
    named = dict(options.signal_types)
    signals = []
    for key in np.unique(tags["kind"].astype(np.int64) << 8 | tags["channel"]).tolist():
        kind, channel = key >> 8, key & 0xFF
        if kind == DEAD_TIME:
            continue
        of_key = tags[(tags["kind"] == kind) & (tags["channel"] == channel)]
        begin = bins.ms_of(of_key["time"])
        values = of_key["value"].astype(np.float64)
        if kind == POSITION:
            values = of_key["value"].astype("<u4").view("<i4") * 1e-3
        end = begin if kind == TRIGGER else np.append(begin[1:], max(end_ms, int(begin[-1])))
        default = "EXTERNAL_SYNC" if kind == CLOCK else "OTHER"
        description = f"channel {channel}: {_NAMES.get(kind, f'tags of kind {kind}')}"
        type_name = named.get(channel, default)
        signals.append(Signal(key, type_name, description, begin, end, values.astype(np.float32)))
    return signals


def _bed(
    run: Run, tags: Records | None, options: Options, bins: Bins, end_ms: int
) -> list[BedPosition]:
    """The position said at the start, until tags say another."""
    channels = [] if tags is None else np.unique(tags["channel"][tags["kind"] == POSITION]).tolist()
    rotation = rotation_of(run.scanner)
    channels = [channel for channel in channels if rotation is None or channel != rotation.tag_channel]
    channel = options.bed_channel
    if channel is None and len(channels) == 1:
        channel = channels[0]
    elif channel is not None and channel not in channels:
        raise PetacqError(f"--bed-channel {channel}: the run has no tags with a position in it")
    begin: list[int] = []
    z_mm: list[float] = []
    if (said := run.operator.get("bed_mm")) is not None:
        begin.append(0)
        z_mm.append(float(said))
    if tags is not None and channel is not None:
        of_bed = tags[(tags["kind"] == POSITION) & (tags["channel"] == channel)]
        begin += bins.ms_of(of_bed["time"]).tolist()
        z_mm += (of_bed["value"].astype("<u4").view("<i4") * 1e-3).tolist()
    return [BedPosition(*of_bed) for of_bed in zip(begin, [*begin[1:], end_ms], z_mm)]


def _gantry(rotation: Rotation | None, tags: Records | None, bins: Bins) -> list[GantryAngle]:
    """The format has angles that stand still: one for each _GANTRY_STEP by which the scanner turns."""
    if rotation is None or not bins.ranges:
        return []
    found = None if tags is None else tags[(tags["kind"] == POSITION) & (tags["channel"] == rotation.tag_channel)]
    if found is None or not len(found):
        raise PetacqError(f"no tag of position on channel {rotation.tag_channel}: the angle of the scanner is unknown")
    times = bins.ms_of(found["time"]).astype(np.float64)
    angles = rotation.angles(found["value"].astype("<u4").view("<i4"))
    edges: list[npt.NDArray[np.float64]] = [np.zeros(1)]
    for begin, end, turned in zip(times, times[1:], np.abs(np.diff(angles))):
        steps = int(np.clip(np.ceil(turned / _GANTRY_STEP), 1, max(end - begin, 1)))
        edges.append(np.linspace(begin, end, steps + 1)[:-1])
    edges.append(times[-1:])
    begin_ms = np.unique(np.clip(np.concatenate(edges).astype(np.int64), 0, max(bins.end_ms - 1, 0)))
    end_ms = np.append(begin_ms[1:], bins.end_ms)
    # Of several tags within a millisecond the last one counts from then on.
    radians = np.interp((begin_ms + end_ms) / 2, times, angles)
    return [GantryAngle(*of) for of in zip(begin_ms.tolist(), end_ms.tolist(), radians.tolist())]


def _alive_pairs(bins: Bins) -> list[list[npt.NDArray[np.object_]]]:
    """[type][type up to this one][module][module, of one type up to this one]: all 1. The boards report the dead time of
    modules; nothing else is known of pairs."""
    table: list[list[npt.NDArray[np.object_]]] = [[] for _ in bins.types]
    for a, b in bins.pairs_of_types:
        out = np.empty(bins.types[a].modules, np.object_)
        for module in range(len(out)):
            out[module] = [[1.0]] * (module + 1 if a == b else bins.types[b].modules)
        table[a].append(out)
    return table


def blocks(petsird: Any, extras: Extras, bins: Bins) -> Iterator[tuple[int, Any]]:
    """Their beginning in ms and the blocks, in the order of time."""

    def interval(begin: int, end: int) -> Any:
        return petsird.TimeInterval(start=begin, stop=end)

    def bed() -> Iterator[tuple[int, Any]]:
        for at in extras.bed:
            matrix = np.eye(3, 4, dtype=np.float32)
            matrix[2, 3] = at.z_mm
            transform = petsird.RigidTransformation(matrix=matrix)
            block = petsird.BedMovementTimeBlock(time_interval=interval(at.begin_ms, at.end_ms), transform=transform)
            yield at.begin_ms, petsird.TimeBlock.BedMovementTimeBlock(block)

    def gantry() -> Iterator[tuple[int, Any]]:
        for at in extras.gantry:
            matrix = np.eye(3, 4, dtype=np.float32)
            c, s = np.cos(at.radians), np.sin(at.radians)
            matrix[:2, :2] = [[c, -s], [s, c]]
            transform = petsird.RigidTransformation(matrix=matrix)
            block = petsird.GantryMovementTimeBlock(time_interval=interval(at.begin_ms, at.end_ms))
            if hasattr(block, "transforms"):
                block.transforms = [transform] * len(bins.types)
            else:
                block.transform = transform
            yield at.begin_ms, petsird.TimeBlock.GantryMovementTimeBlock(block)

    def signal(of: Signal) -> Iterator[tuple[int, Any]]:
        for begin, end, value in zip(of.begin_ms.tolist(), of.end_ms.tolist(), of.values.tolist()):
            block = petsird.ExternalSignalTimeBlock(
                time_interval=interval(begin, end), signal_id=of.id, signal_values=[value]
            )
            yield begin, petsird.TimeBlock.ExternalSignalTimeBlock(block)

    def seconds() -> Iterator[tuple[int, Any]]:
        of_pairs = None  # made once
        for second in extras.seconds:
            time = interval(second.begin_ms, second.end_ms)
            if second.alive is not None:
                alive = [np.repeat(of.astype(np.float32), bins.energies) for of in bins.by_type(second.alive)]
                fractions = petsird.AliveTimeFractions(singles_alive_time_fractions=alive)
                if hasattr(fractions, "module_pair_alive_time_fractions"):
                    of_pairs = _alive_pairs(bins) if of_pairs is None else of_pairs
                    fractions.module_pair_alive_time_fractions = of_pairs
                dead_time = petsird.DeadTimeTimeBlock(time_interval=time, alive_time_fractions=fractions)
                yield second.begin_ms, petsird.TimeBlock.DeadTimeTimeBlock(dead_time)
            if second.singles is not None:
                counts = [of.astype(np.uint64) for of in bins.by_type(second.singles)]
                histogram = petsird.SinglesHistogramTimeBlock(time_interval=time)
                if hasattr(histogram, "singles_histograms"):
                    histogram.singles_histograms = counts
                else:
                    histogram.singles_per_detection_bin_histogram = [of.tolist() for of in counts]
                yield second.begin_ms, petsird.TimeBlock.SinglesHistogramTimeBlock(histogram)

    parts = (bed(), gantry(), *(signal(s) for s in extras.signals), seconds())
    return iter(heapq.merge(*parts, key=lambda of_time: of_time[0]))
