"""How records become the events of a PETSIRD file: their bins, their time blocks, and their bytes."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from petacq.errors import PetacqError
from petacq.layout import DELAYED, PROMPT, Records
from petacq.normalisation import Normalisation
from petacq.run import Run
from petacq.scanner.arrangement import Integers
from petacq.scanner.petsird_types import PetsirdType, elements_of, types_of

MOST_TOF_BINS = 65535
MOST_MS = (1 << 32) - 1

Rows = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Options:
    block_ms: int = 1  #: length of a time block: the resolution of the time of an event
    tof_bin_ticks: int = 1  #: width of a TOF bin; 0: no TOF
    energy_bins: int = 1  #: of the energy window
    delayeds: bool = True
    only_events: bool = False  #: no singles histograms, dead time, signals and bed positions
    tof_resolution_ps: float | None = None  #: FWHM of the time difference of a pair, if known
    energy_resolution: float | None = None  #: FWHM / energy at 511 keV, if known
    bed_channel: int | None = None  #: channel of the tags with the position of the bed
    signal_types: tuple[tuple[int, str], ...] = ()  #: channel of tags and name of its type in PETSIRD
    normalisation: Normalisation | None = None  #: detection efficiencies, if known


DEFAULTS = Options()


@dataclass(frozen=True)
class Range:
    """A time in which records can be, in ticks and in the milliseconds that hold it, and its time blocks."""

    start: int
    end: int
    begin_ms: int
    end_ms: int
    first_block: int


@dataclass(frozen=True)
class Bins:
    """How records become events: the tables of one conversion."""

    element: Integers  # [crystal]: among the elements of all types of modules, type by type, module by module
    window_ticks: int
    tof_bin_ticks: int
    tof_half: int  # bins on either side of the middle one
    energy_edges: npt.NDArray[np.float32]
    start_ticks: int
    ms_per_tick: float
    block_ms: int
    ranges: tuple[Range, ...] = ()
    types: tuple[PetsirdType, ...] = ()  # empty: one, in which nobody is interested

    @property
    def end_ms(self) -> int:
        return self.ranges[-1].end_ms if self.ranges else 0

    @property
    def block_count(self) -> int:
        if not self.ranges:
            return 0
        last = self.ranges[-1]
        return last.first_block + _blocks_in(last.begin_ms, last.end_ms, self.block_ms)

    @cached_property
    def first_element(self) -> Integers:
        """``[type]``"""
        counts = [of.crystals.size for of in self.types[:-1]]
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    @property
    def pairs_of_types(self) -> list[tuple[int, int]]:
        """The first is not the lower one, as PETSIRD wants it."""
        return [(a, b) for a in range(len(self.first_element)) for b in range(a + 1)]

    def by_type(self, of_crystals: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        """Values of crystals as those of the elements of each type."""
        return np.split(of_crystals[np.argsort(self.element)], self.first_element[1:])

    def list_of(self, records: Records) -> Integers:
        """Which of the ``pairs_of_types`` each record is of."""
        if len(self.first_element) == 1:
            return np.zeros(len(records), np.int64)
        types = [
            np.searchsorted(self.first_element, self.element.take(self._crystals(records, name)), "right") - 1
            for name in ("crystal_a", "crystal_b")
        ]
        higher, lower = np.maximum(*types), np.minimum(*types)
        return np.asarray(higher * (higher + 1) // 2 + lower, np.int64)

    def _crystals(self, records: Records, name: str) -> npt.NDArray[np.intp]:
        crystals = records[name].astype(np.intp)
        if len(records) and (highest := int(crystals.max())) >= len(self.element):
            raise PetacqError(f"a record has crystal {highest} of a scanner with {len(self.element)}")
        return crystals

    @property
    def energies(self) -> int:
        return len(self.energy_edges) - 1

    def detection_bins(self, crystal: npt.NDArray[Any], energy: npt.NDArray[Any]) -> Integers:
        element = self.element.take(crystal)
        if self.energies == 1:
            return element
        bin_of = np.searchsorted(self.energy_edges, energy, "right") - 1
        return np.asarray(element * self.energies + np.clip(bin_of, 0, self.energies - 1), np.int64)

    def rows(self, records: Records) -> Rows:
        """``[3][record]``: detection bins of the first and of the second photon, TOF bin. PETSIRD wants the higher type of
        module first, and of one type the larger detection bin. The TOF bin holds the arrival of the first less that of the
        second."""
        crystal = {name: self._crystals(records, name) for name in ("crystal_a", "crystal_b")}
        dt = records["dt"].astype(np.int64)
        if len(records) and (longest := int(dt.max())) > self.window_ticks:
            raise PetacqError(f"a record has dt {longest} in a window of {self.window_ticks} ticks")
        a = self.detection_bins(crystal["crystal_a"], records["energy_a"])
        b = self.detection_bins(crystal["crystal_b"], records["energy_b"])
        out = np.empty((3, len(records)), np.int32)
        np.maximum(a, b, out=out[0])
        np.minimum(a, b, out=out[1])
        width = self.tof_bin_ticks
        if width > 1:
            dt = (2 * dt + width) // (2 * width)
        # a came first, so its arrival less that of b is -dt.
        out[2] = 0 if width == 0 else self.tof_half + np.where(a > b, -dt, dt)
        if len(self.first_element) > 1:
            first_bin = self.first_element * self.energies
            for row in out[:2]:
                row -= first_bin[np.searchsorted(first_bin, row, "right") - 1].astype(np.int32)
        return out

    def ms_of(self, ticks: npt.NDArray[Any]) -> Integers:
        """Whole milliseconds from the start of the run; 0 before it."""
        since = np.maximum(ticks.astype(np.int64) - self.start_ticks, 0)
        return np.asarray(np.floor(since * self.ms_per_tick), np.int64)

    def block_of(self, ticks: npt.NDArray[Any]) -> Integers:
        """Numbers of time blocks. Raises PetacqError for a time that the run does not cover."""
        starts = np.array([r.start for r in self.ranges], np.uint64)
        which = np.searchsorted(starts, ticks, "right") - 1
        ends = np.array([r.end for r in self.ranges], np.uint64)
        if len(ticks) and (which.min() < 0 or (ticks >= ends.take(which)).any()):
            raise PetacqError("the run has records from times that it does not cover, or not in the order of time")
        columns = [(r.begin_ms, r.end_ms, r.first_block) for r in self.ranges]
        begin, end, first = np.array(columns, np.int64).reshape(-1, 3).T
        ms = np.clip(self.ms_of(ticks), begin.take(which), end.take(which) - 1)
        return np.asarray(first.take(which) + (ms - begin.take(which)) // self.block_ms, np.int64)

    def block_ms_of(self, number: int) -> tuple[int, int]:
        """Begin and end of a time block."""
        of = self.ranges[bisect_right(self.ranges, number, key=lambda r: r.first_block) - 1]
        begin = of.begin_ms + (number - of.first_block) * self.block_ms
        return begin, min(begin + self.block_ms, of.end_ms)


def floor_ms(ticks: int, ms_per_tick: float) -> int:
    """Whole milliseconds; a nanosecond before the next one is rounding."""
    return math.floor(ticks * ms_per_tick + 1e-6)


def ceil_ms(ticks: int, ms_per_tick: float) -> int:
    return math.ceil(ticks * ms_per_tick - 1e-6)


def _blocks_in(begin_ms: int, end_ms: int, block_ms: int) -> int:
    return -(-(end_ms - begin_ms) // block_ms)


def _ranges(run: Run, block_ms: int) -> tuple[Range, ...]:
    """What the run covers, from the first one on; what lies within a millisecond of each other is one."""
    first, last = run.coincidences.first_time, run.coincidences.last_time
    covered = list(run.coverage.intervals or ())
    if not covered and first is not None and last is not None:
        covered = [(first, last + 1)]
    if covered and first is not None and last is not None:
        # A run of 1.0 knows the start of its data to some microseconds.
        covered[0] = (min(covered[0][0], first), covered[0][1])
        covered[-1] = (covered[-1][0], max(covered[-1][1], last + 1))
    ms_per_tick = run.scanner.tick_ps * 1e-9
    ranges: list[Range] = []
    for start, end in covered:
        begin_ms = floor_ms(start - covered[0][0], ms_per_tick)
        end_ms = ceil_ms(end - covered[0][0], ms_per_tick)
        if ranges and begin_ms <= ranges[-1].end_ms:
            before = ranges.pop()
            start, begin_ms = before.start, before.begin_ms
        blocks = ranges[-1].first_block + _blocks_in(ranges[-1].begin_ms, ranges[-1].end_ms, block_ms) if ranges else 0
        ranges.append(Range(start, end, begin_ms, end_ms, blocks))
    if ranges and ranges[-1].end_ms > MOST_MS:
        raise PetacqError(f"the run is longer than the {MOST_MS} ms that the format can count")
    return tuple(ranges)


def bins_of(run: Run, options: Options) -> Bins:
    scanner = run.scanner
    types = types_of(scanner)
    window_ticks = int(run.coverage.coincidence["window_ticks"])
    half = 0
    if options.tof_bin_ticks:
        half = (2 * window_ticks + options.tof_bin_ticks) // (2 * options.tof_bin_ticks)
        if 2 * half + 1 > MOST_TOF_BINS:
            raise PetacqError(
                f"{2 * half + 1} TOF bins of {options.tof_bin_ticks} ticks in a window of {window_ticks}: expected at "
                f"most {MOST_TOF_BINS}; choose wider ones"
            )
    lower, upper = _energy_window(run)
    ranges = _ranges(run, options.block_ms)
    return Bins(
        element=elements_of(types),
        window_ticks=window_ticks,
        tof_bin_ticks=options.tof_bin_ticks,
        tof_half=half,
        energy_edges=np.linspace(lower, upper, options.energy_bins + 1).astype(np.float32),
        start_ticks=ranges[0].start if ranges else run.start_ticks,
        ms_per_tick=scanner.tick_ps * 1e-9,
        block_ms=options.block_ms,
        ranges=ranges,
        types=tuple(types),
    )


def _energy_window(run: Run) -> tuple[float, float]:
    energy = run.coverage.energy
    if energy.get("filter", True) and energy.get("upper_keV", 0) > energy.get("lower_keV", 0):
        return float(energy["lower_keV"]), float(energy["upper_keV"])
    highest = 0.0
    for block in run.coincidences.blocks():
        highest = max(highest, float(block["energy_a"].max()), float(block["energy_b"].max()))
    return 0.0, float(math.floor(highest) + 1)


# Time blocks


@dataclass(frozen=True)
class Events:
    """The events of one kind, and of one pair of types of modules, in a time block, in pieces."""

    count: int
    pieces: Sequence[Any]


_KINDS = (PROMPT, DELAYED)


@dataclass(frozen=True)
class Interval:
    begin_ms: int
    end_ms: int
    prompts: Sequence[Events]  #: of each pair of types
    delayeds: Sequence[Events]


def count_of(lists: Sequence[Events]) -> int:
    return sum(events.count for events in lists)


# Records at once. With fewer, the calls of NumPy cost more; with more, memory is taken from the system for every array.
_AT_ONCE = 16384

#: Makes the pieces of the ranges of rows from the rows, and where each range begins and ends.
Cut = Callable[[Rows, Integers, Integers], Sequence[Any]]


def rows_cut(rows: Rows, begin: Integers, end: Integers) -> Sequence[Any]:
    return [rows[:, low:high] for low, high in zip(begin.tolist(), end.tolist())]


NO_EVENTS = Events(0, ())


class _Gathering:
    """The events of a kind, of the time block that is not yet complete."""

    def __init__(self) -> None:
        self._count = 0
        self._pieces: list[Any] = []

    def add(self, count: int, piece: Any) -> None:
        if count:
            self._count += count
            self._pieces.append(piece)

    def take(self) -> Events:
        if not self._count:
            return NO_EVENTS
        events = Events(self._count, self._pieces)
        self._count, self._pieces = 0, []
        return events


@dataclass(frozen=True)
class _Part:
    """Some records of a run."""

    numbers: list[int]  # of the time blocks that have any of them
    disordered: bool
    counts: list[int]  # [kind][pair of types][time block]: events
    pieces: Sequence[Any]  # [kind][pair of types][time block]


def _part_of(records: Records, bins: Bins, cut: Cut) -> _Part:
    number = bins.block_of(records["time"])
    present = number[np.append(0, np.flatnonzero(number[1:] != number[:-1]) + 1)]
    lists = len(bins.pairs_of_types)
    of_list = bins.list_of(records) + lists * records["kind"].astype(np.int64)
    order = [np.flatnonzero(of_list == lists * kind + k) for kind in _KINDS for k in range(lists)]
    first, begin, end = 0, [], []
    for of_kind in order:
        numbers = number.take(of_kind)
        begin.append(first + np.searchsorted(numbers, present, "left"))
        end.append(first + np.searchsorted(numbers, present, "right"))
        first += len(of_kind)
    low, high = np.concatenate(begin), np.concatenate(end)
    pieces = cut(bins.rows(records.take(np.concatenate(order))), low, high)
    return _Part(present.tolist(), bool((np.diff(present) < 0).any()), (high - low).tolist(), pieces)


def intervals(
    run: Run, bins: Bins, cut: Cut = rows_cut, progress: Callable[[int, int], None] = lambda done, total: None
) -> Iterator[Interval]:
    """All that the run covers in time blocks, those without events included."""
    pairs = run.coincidences
    current = 0
    lists = len(bins.pairs_of_types)
    gathering = [_Gathering() for _ in range(len(_KINDS) * lists)]
    done = 0

    def finish() -> Interval:
        nonlocal current
        begin, end = bins.block_ms_of(current)
        current += 1
        events = [of_list.take() for of_list in gathering]
        return Interval(begin, end, events[:lists], events[lists:])

    for block in pairs.blocks(verify=True):
        for first_record in range(0, len(block), _AT_ONCE):
            part = _part_of(block[first_record : first_record + _AT_ONCE], bins, cut)
            if part.numbers[0] < current or part.disordered:
                raise PetacqError("the run has records that are not in the order of time")
            for k, number in enumerate(part.numbers):
                while current < number:
                    yield finish()
                for number_of_list, gathered in enumerate(gathering):
                    at = number_of_list * len(part.numbers) + k
                    gathered.add(part.counts[at], part.pieces[at])
        done += len(block)
        progress(done, len(pairs))
    while current < bins.block_count:
        yield finish()


# Bytes: unsigned numbers are written 7 bits at a time, the low ones first; the high bit says that more follow.


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _varints(largest: int) -> tuple[npt.NDArray[np.uint32], Integers]:
    """Of each number from 0 to the largest: its bytes, followed by zeros up to four; how many they are."""
    if largest >= 1 << 28:
        raise PetacqError(f"{largest + 1} detection bins: expected at most {1 << 28}")
    places = np.arange(4)
    left = np.arange(largest + 1)[:, None] >> (7 * places)
    padded = (left & 0x7F | np.where(left > 0x7F, 0x80, 0)).astype(np.uint8)
    return padded.view(np.uint32).ravel(), 1 + np.count_nonzero(left[:, 1:], axis=1)


class EventBytes:
    """Cuts rows into the bytes of their events, which are those of three numbers one after the other."""

    def __init__(self, bins: Bins) -> None:
        detection_bin = _varints(len(bins.element) * bins.energies - 1)
        self._columns = (detection_bin, detection_bin, _varints(2 * bins.tof_half))

    def __call__(self, rows: Rows, begin: Integers, end: Integers) -> Sequence[Any]:
        count = rows.shape[1]
        padded = np.empty((count, 3), np.uint32)
        edges = np.zeros(count + 1, np.int64)
        for column, (number, (four, length)) in enumerate(zip(rows, self._columns)):
            padded[:, column] = four.take(number)
            edges[1:] += length.take(number)
        places = padded.view(np.uint8)
        used = places != 0
        used[:, ::4] = True  # only the first byte of a number can be 0
        packed = np.compress(used.ravel(), places.ravel()).data  # several times faster than places[used]
        np.cumsum(edges, out=edges)
        return [packed[low:high] for low, high in zip(edges.take(begin).tolist(), edges.take(end).tolist())]


def event_block(
    begin_ms: int, end_ms: int, prompts: Sequence[Events], delayeds: Sequence[Events] | None, triangular: bool = True
) -> list[Any]:
    """A stream item: of the six types of time blocks the first. Lists of events are in a table of pairs of types of modules,
    whose rows end with the diagonal if it is ``triangular``; there are none of single photons, and none of groups of three
    and four."""
    out = [b"\x01\x00" + varint(begin_ms) + varint(end_ms) + b"\x00", *_table(prompts, triangular)]
    return [*out, *(_table(delayeds, triangular) if delayeds is not None else [b"\x00"]), b"\x00\x00"]


def _table(lists: Sequence[Events], triangular: bool) -> list[Any]:
    types = (math.isqrt(8 * len(lists) + 1) - 1) // 2
    out: list[Any] = [varint(types)]
    each = iter(lists)
    for row in range(types):
        out.append(varint(row + 1 if triangular else types))
        for events in itertools.islice(each, row + 1):
            out += [varint(events.count), *events.pieces]
        if not triangular:
            out.append(bytes(types - row - 1))
    return out
