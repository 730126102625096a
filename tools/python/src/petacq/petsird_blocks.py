"""The time blocks of a PETSIRD file that hold no events: singles, dead time, signals, bed positions."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from petacq.errors import PetacqError
from petacq.layout import Records
from petacq.petsird_events import Bins, Integers, Options
from petacq.run import Run

TRIGGER, GATE, POSITION, DEAD_TIME, CLOCK = range(5)
_NAMES = {TRIGGER: "trigger", GATE: "gate, 1 open", POSITION: "position, mm", CLOCK: "clock"}
#: The types of signals in PETSIRD.
SIGNAL_TYPES = (
    *("ECG_TRACE", "ECG_TRIGGER", "RESP_TRACE", "RESP_TRIGGER", "OTHER_MOTION_SIGNAL", "OTHER_MOTION_TRIGGER"),
    *("EXTERNAL_SYNC", "MR_PULSE_START", "OTHER"),
)
#: Numbers above are rounded: the format holds values of signals as f32.
_MOST_EXACT = 1 << 24


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


@dataclass
class Extras:
    """What a file holds beside events."""

    seconds: Iterable[Second] = ()
    singles: bool = False  #: the seconds have counts of singles
    signals: Sequence[Signal] = ()
    bed: Sequence[BedPosition] = ()
    not_held: list[str] = field(default_factory=list)


def extras_of(run: Run, options: Options, bins: Bins) -> Extras:
    extras = Extras()
    if options.only_events:
        extras.not_held.append("singles histograms, dead time, signals and bed positions: left out")
        return extras
    end_ms = int(bins.block_of(np.array([run.stop_ticks]))[0] + 1) * bins.block_ms
    if (of_run := run.seconds) is not None:
        extras.seconds = _SecondsOfRun(of_run, bins, run.scanner.bdm(np.arange(run.scanner.crystal_count)))
        extras.singles = True
    tags = run.tags.records() if run.tags is not None else None
    if tags is not None and len(tags):
        extras.signals = _signals(tags, options, bins, end_ms)
        if any((s.values > _MOST_EXACT).any() for s in extras.signals):
            extras.not_held.append(f"values of signals above {_MOST_EXACT}: rounded to 24 bits")
    extras.bed = _bed(run, extras, tags, options, bins, end_ms)
    return extras


@dataclass(frozen=True)
class _SecondsOfRun:
    """From the records by the second of a run: singles in windows alone and with others, and dead time by module."""

    records: Any
    bins: Bins
    module: Integers  # [crystal]

    def __iter__(self) -> Iterator[Second]:
        for block in self.records.blocks():
            begin, end = self.bins.ms_of(block["start"]), self.bins.ms_of(block["start"] + block["length"])
            for k, second in enumerate(block):
                singles = second["crystal_unpaired"].astype(np.uint64) + second["crystal_grouped"]
                blind = second["module_dead_time"] / float(second["length"])  # NaN: unknown
                alive = None if np.isnan(blind).all() else 1 - np.nan_to_num(blind)[self.module]
                yield Second(int(begin[k]), int(end[k]), singles, alive)


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
    run: Run, extras: Extras, tags: Records | None, options: Options, bins: Bins, end_ms: int
) -> list[BedPosition]:
    """The position said at the start, until tags say another."""
    channels = [] if tags is None else np.unique(tags["channel"][tags["kind"] == POSITION]).tolist()
    channel = options.bed_channel
    if channel is None and len(channels) == 1:
        channel = channels[0]
    elif channel is None and channels:
        extras.not_held.append(f"positions of the bed: channels {channels} have positions; name one with --bed-channel")
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

    def signal(of: Signal) -> Iterator[tuple[int, Any]]:
        for begin, end, value in zip(of.begin_ms.tolist(), of.end_ms.tolist(), of.values.tolist()):
            block = petsird.ExternalSignalTimeBlock(
                time_interval=interval(begin, end), signal_id=of.id, signal_values=[value]
            )
            yield begin, petsird.TimeBlock.ExternalSignalTimeBlock(block)

    def seconds() -> Iterator[tuple[int, Any]]:
        by_element = np.argsort(bins.element)
        for second in extras.seconds:
            time = interval(second.begin_ms, second.end_ms)
            if second.alive is not None:
                alive = np.repeat(second.alive[by_element].astype(np.float32), bins.energies)
                fractions = petsird.AliveTimeFractions(singles_alive_time_fractions=[alive])
                dead_time = petsird.DeadTimeTimeBlock(time_interval=time, alive_time_fractions=fractions)
                yield second.begin_ms, petsird.TimeBlock.DeadTimeTimeBlock(dead_time)
            if second.singles is not None:
                counts = second.singles[by_element].astype(np.uint64)
                histogram = petsird.SinglesHistogramTimeBlock(time_interval=time)
                if hasattr(histogram, "singles_histograms"):
                    histogram.singles_histograms = [counts]
                else:
                    histogram.singles_per_detection_bin_histogram = [counts.tolist()]
                yield second.begin_ms, petsird.TimeBlock.SinglesHistogramTimeBlock(histogram)

    parts = (bed(), *(signal(s) for s in extras.signals), seconds())
    return iter(heapq.merge(*parts, key=lambda of_time: of_time[0]))
