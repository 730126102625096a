"""How records become the events of a PETSIRD file: their bins and their time blocks."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from petacq.coverage import UNKNOWN_DT, UNKNOWN_ENERGIES
from petacq.errors import PetacqError
from petacq.layout import COINCIDENT, DELAYED, PROMPT, Records
from petacq.run import Run
from petacq.scanner.arrangement import Integers
from petacq.scanner.petsird_types import PetsirdType, elements_of, types_of

MOST_TOF_BINS = 65535
MOST_MS = (1 << 32) - 1
_ANY_ENERGY = (0.0, 1e6)  # keV; of records that do not tell their energies

Rows = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Options:
    block_ms: int = 1  #: length of a time block: the resolution of the time of an event
    tof_bin_ticks: int = 1  #: width of a TOF bin; 0: no TOF
    energy_bins: int = 1  #: of the energy window
    delayeds: bool = True
    triples: bool = True
    only_events: bool = False  #: prompts and delayeds alone
    tof_resolution_ps: float | None = None  #: FWHM of the time difference of a pair, if known
    energy_resolution: float | None = None  #: FWHM / energy at 511 keV, if known
    bed_channel: int | None = None  #: channel of the tags with the position of the bed
    signal_types: tuple[tuple[int, str], ...] = ()  #: channel of tags and name of its type in PETSIRD
    normalisation: Path | None = None  #: file with the detection efficiencies, if known


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
    pair_energies: range  # the energy bins of the photons of pairs; the others have none of them
    start_ticks: int
    ms_per_tick: float
    block_ms: int
    ranges: tuple[Range, ...] = ()
    types: tuple[PetsirdType, ...] = ()  # empty: one, in which nobody is interested
    gamma_energy: int | None = None  # the energy bin of gammas; None: the file has no triples

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

    @property
    def triples_of_types(self) -> list[tuple[int, int, int]]:
        """None is higher than the one before it. Empty if the file has no triples."""
        pairs = [] if self.gamma_energy is None else self.pairs_of_types
        return [(a, b, c) for a, b in pairs for c in range(b + 1)]

    def by_type(self, of_crystals: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        """Values of crystals as those of the elements of each type."""
        return np.split(of_crystals[np.argsort(self.element)], self.first_element[1:])

    def list_of_pair(self, records: Records) -> Integers:
        """Which of the ``pairs_of_types`` each record is of; behind those, the same of delayeds."""
        lists = len(self.pairs_of_types)
        kind = records["kind"].astype(np.int64)
        if len(self.first_element) == 1:
            return lists * kind
        lower, higher = np.sort(self._types(records, "crystal_a", "crystal_b"), axis=0)
        return np.asarray(higher * (higher + 1) // 2 + lower + lists * kind, np.int64)

    def list_of_triple(self, records: Records) -> Integers:
        """Which of the ``triples_of_types`` each record is of; -1: the format has no place for it."""
        held = (records["kind"] == PROMPT) & (records["third"] == COINCIDENT)
        c, b, a = np.sort(self._types(records, "crystal_a", "crystal_b", "gamma_crystal"), axis=0)
        return np.where(held, a * (a + 1) * (a + 2) // 6 + b * (b + 1) // 2 + c, -1)

    def _types(self, records: Records, *names: str) -> Integers:
        """``[name][record]``: the types of modules."""
        elements = np.array([self.element.take(self._crystals(records, name)) for name in names])
        return np.searchsorted(self.first_element, elements, "right") - 1

    def _crystals(self, records: Records, name: str) -> npt.NDArray[np.intp]:
        crystals = records[name].astype(np.intp)
        if len(records) and (highest := int(crystals.max())) >= len(self.element):
            raise PetacqError(f"a record has crystal {highest} of a scanner with {len(self.element)}")
        return crystals

    @property
    def energies(self) -> int:
        return len(self.energy_edges) - 1

    @property
    def pair_window(self) -> tuple[float, float]:
        """From the lowest to the highest energy of photons of pairs, keV."""
        return float(self.energy_edges[self.pair_energies.start]), float(self.energy_edges[self.pair_energies.stop])

    def detection_bins(self, crystal: npt.NDArray[Any], energy: npt.NDArray[Any]) -> Integers:
        """Of photons of pairs."""
        element = self.element.take(crystal)
        if self.energies == 1:
            return element
        bin_of = np.searchsorted(self.energy_edges, energy, "right") - 1
        of_pairs = self.pair_energies
        return np.asarray(element * self.energies + np.clip(bin_of, of_pairs[0], of_pairs[-1]), np.int64)

    def _in_its_type(self, detection_bins: Rows) -> None:
        """Makes detection bins of all types of modules those of their own type."""
        if len(self.first_element) > 1:
            first_bin = self.first_element * self.energies
            for row in detection_bins:
                row -= first_bin[np.searchsorted(first_bin, row, "right") - 1].astype(np.int32)

    def _checked_dt(self, records: Records) -> Integers:
        dt = records["dt"].astype(np.int64)
        if len(records) and (longest := int(dt.max())) > self.window_ticks:
            raise PetacqError(f"a record has dt {longest} in a window of {self.window_ticks} ticks")
        return dt

    def rows_of_pairs(self, records: Records) -> Rows:
        """``[3][record]``: detection bins of the first and of the second photon, TOF bin. PETSIRD wants the higher type of
        module first, and of one type the larger detection bin. The TOF bin holds the arrival of the first less that of the
        second."""
        crystal = {name: self._crystals(records, name) for name in ("crystal_a", "crystal_b")}
        dt = self._checked_dt(records)
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
        self._in_its_type(out[:2])
        return out

    def rows_of_triples(self, records: Records) -> Rows:
        """``[5][record]``: detection bins in the order of PETSIRD, as with pairs; the TOF bins of the first with the second
        and with the third photon."""
        assert self.gamma_energy is not None
        bins = np.empty((3, len(records)), np.int64)
        for row, name in enumerate(("a", "b")):
            bins[row] = self.detection_bins(self._crystals(records, f"crystal_{name}"), records[f"energy_{name}"])
        bins[2] = self.element.take(self._crystals(records, "gamma_crystal")) * self.energies + self.gamma_energy
        gamma_dt = records["gamma_dt"].astype(np.int64)
        arrival = np.array([np.zeros_like(gamma_dt), self._checked_dt(records), gamma_dt])
        order = np.argsort(-bins, axis=0, kind="stable")
        first, *others = np.take_along_axis(arrival, order, 0)
        out = np.empty((5, len(records)), np.int32)
        out[:3] = np.take_along_axis(bins, order, 0)
        width = self.tof_bin_ticks
        for row, arrived in enumerate(others, 3):
            apart = first - arrived
            in_bins = (2 * np.abs(apart) + width) // max(2 * width, 1) * np.sign(apart)
            if len(records) and (farthest := int(np.abs(in_bins).max())) > self.tof_half and width:
                raise PetacqError(f"a triple has photons {farthest * width} ticks apart, which its rules do not allow")
            out[row] = 0 if width == 0 else self.tof_half + in_bins
        self._in_its_type(out[:3])
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
    longest = window_ticks
    lower, upper = _energy_window(run)
    # What the records do not tell has one bin.
    unknown = run.coverage.unknown
    energy_bins = 1 if UNKNOWN_ENERGIES in unknown else options.energy_bins
    tof_bin_ticks = 0 if UNKNOWN_DT in unknown else options.tof_bin_ticks
    edges = np.linspace(lower, upper, energy_bins + 1).astype(np.float32)
    pair_energies, gamma_energy = range(energy_bins), None
    if has_triples(run) and options.triples and not options.only_events:
        rules = _gammas(run)
        longest = max(window_ticks + int(rules["before_ticks"]), int(rules["after_ticks"]))
        # A bin between the windows, in which there is nothing, tells where each of them begins and ends.
        of_gammas = np.array([rules["lower_keV"], rules["upper_keV"]], np.float32)
        if of_gammas[0] > edges[-1]:
            edges, gamma_energy = np.append(edges, of_gammas), len(edges)
        else:
            edges, pair_energies, gamma_energy = np.append(of_gammas, edges), range(2, 2 + energy_bins), 0
    half = 0
    if tof_bin_ticks:
        half = (2 * longest + tof_bin_ticks) // (2 * tof_bin_ticks)
        if 2 * half + 1 > MOST_TOF_BINS:
            raise PetacqError(
                f"{2 * half + 1} TOF bins of {tof_bin_ticks} ticks, for photons up to {longest} apart: expected at "
                f"most {MOST_TOF_BINS}; choose wider ones"
            )
    ranges = _ranges(run, options.block_ms)
    return Bins(
        element=elements_of(types),
        window_ticks=window_ticks,
        tof_bin_ticks=tof_bin_ticks,
        tof_half=half,
        energy_edges=edges,
        pair_energies=pair_energies,
        start_ticks=ranges[0].start if ranges else run.start_ticks,
        ms_per_tick=scanner.tick_ps * 1e-9,
        block_ms=options.block_ms,
        ranges=ranges,
        types=tuple(types),
        gamma_energy=gamma_energy,
    )


def _gammas(run: Run) -> Mapping[str, Any]:
    """The rules of its triples; pairs are found without them. Empty: it has none."""
    return {} if run.triples is None else run.triples.coverage.gammas


def has_triples(run: Run) -> bool:
    return bool(_gammas(run))


def _energy_window(run: Run) -> tuple[float, float]:
    energy = run.coverage.energy
    if energy.get("filter", True) and energy.get("upper_keV", 0) > energy.get("lower_keV", 0):
        return float(energy["lower_keV"]), float(energy["upper_keV"])
    if UNKNOWN_ENERGIES in run.coverage.unknown:
        return _ANY_ENERGY
    highest = 0.0
    for block in run.coincidences.blocks():
        highest = max(highest, float(block["energy_a"].max()), float(block["energy_b"].max()))
    return 0.0, float(math.floor(highest) + 1)


# Time blocks


@dataclass(frozen=True)
class Events:
    """The events of one kind, and of one pair or triple of types of modules, in a time block, in pieces."""

    count: int
    pieces: Sequence[Any]


NO_EVENTS = Events(0, ())


@dataclass(frozen=True)
class Interval:
    begin_ms: int
    end_ms: int
    prompts: Sequence[Events]  #: of each pair of types
    delayeds: Sequence[Events]
    triples: Sequence[Events]  #: of each triple of types


def count_of(lists: Sequence[Events]) -> int:
    return sum(events.count for events in lists)


# Records at once. With fewer, the calls of NumPy cost more; with more, memory is taken from the system for every array.
_AT_ONCE = 16384

#: Makes the pieces of the ranges of rows from the rows, and where each range begins and ends.
Cut = Callable[[Rows, Integers, Integers], Sequence[Any]]


def rows_cut(rows: Rows, begin: Integers, end: Integers) -> Sequence[Any]:
    return [rows[:, low:high] for low, high in zip(begin.tolist(), end.tolist())]


class _Gathering:
    """The events of a list, of the time block that is not yet complete."""

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
class _Sorting:
    """How records of a kind become lists of events."""

    lists: int
    list_of: Callable[[Records], Integers]  # -1: in none
    rows_of: Callable[[Records], Rows]
    cut: Cut


@dataclass(frozen=True)
class _Part:
    """Some records of a run."""

    numbers: list[int]  # of the time blocks that have any of them
    disordered: bool
    counts: list[int]  # [list][time block]: events
    pieces: Sequence[Any]  # [list][time block]


def _part_of(records: Records, bins: Bins, sorting: _Sorting) -> _Part:
    number = bins.block_of(records["time"])
    present = number[np.append(0, np.flatnonzero(number[1:] != number[:-1]) + 1)]
    of_list = sorting.list_of(records)
    order = [np.flatnonzero(of_list == k) for k in range(sorting.lists)]
    first, begin, end = 0, [], []
    for of_one in order:
        numbers = number.take(of_one)
        begin.append(first + np.searchsorted(numbers, present, "left"))
        end.append(first + np.searchsorted(numbers, present, "right"))
        first += len(of_one)
    low, high = np.concatenate(begin), np.concatenate(end)
    pieces = sorting.cut(sorting.rows_of(records.take(np.concatenate(order))), low, high)
    return _Part(present.tolist(), bool((np.diff(present) < 0).any()), (high - low).tolist(), pieces)


def _by_time_block(
    blocks: Iterator[Records], bins: Bins, sorting: _Sorting, done: Callable[[int], None]
) -> Iterator[list[Events]]:
    """The lists of each time block. ``done`` is called with numbers of records."""
    current = 0
    gathering = [_Gathering() for _ in range(sorting.lists)]
    for block in blocks:
        for first_record in range(0, len(block), _AT_ONCE):
            part = _part_of(block[first_record : first_record + _AT_ONCE], bins, sorting)
            if part.numbers[0] < current or part.disordered:
                raise PetacqError("the run has records that are not in the order of time")
            for k, number in enumerate(part.numbers):
                while current < number:
                    yield [of_list.take() for of_list in gathering]
                    current += 1
                for number_of_list, gathered in enumerate(gathering):
                    at = number_of_list * len(part.numbers) + k
                    gathered.add(part.counts[at], part.pieces[at])
        done(len(block))
    while current < bins.block_count:
        yield [of_list.take() for of_list in gathering]
        current += 1


def intervals(
    run: Run, bins: Bins, cut: Cut = rows_cut, progress: Callable[[int, int], None] = lambda done, total: None
) -> Iterator[Interval]:
    """All that the run covers in time blocks, those without events included."""
    lists = len(bins.pairs_of_types)
    of_pairs = _Sorting(2 * lists, bins.list_of_pair, bins.rows_of_pairs, cut)
    of_triples = _Sorting(len(bins.triples_of_types), bins.list_of_triple, bins.rows_of_triples, cut)
    triples = run.triples if of_triples.lists else None
    total = len(run.coincidences) + (len(triples) if triples is not None else 0)
    done = 0

    def add(records: int) -> None:
        nonlocal done
        done += records
        progress(done, total)

    pairs_found = _by_time_block(run.coincidences.blocks(verify=True), bins, of_pairs, add)
    triples_found = _by_time_block(iter(()) if triples is None else triples.blocks(verify=True), bins, of_triples, add)
    for number, (pairs, of_types) in enumerate(zip(pairs_found, triples_found, strict=True)):
        yield Interval(*bins.block_ms_of(number), pairs[:lists], pairs[lists:], of_types)
