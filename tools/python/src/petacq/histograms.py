"""Histograms of list-mode. They read block by block, so memory does not grow with the file.

``pairs`` is ``run.coincidences``, ``run.singles``, or an array of records as these give them.
``kind`` of coincidences is "prompt", "delayed" or "all".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from petacq.layout import COINCIDENCE, DELAYED, PROMPT, SINGLE, Records
from petacq.records import RecordBlocks
from petacq.scanner import Scanner

Kind = Literal["prompt", "delayed", "all"]
Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.floating[Any]]
Source = RecordBlocks | Records | Iterable[Records]


#: Fraction of a bin: lines that are on an edge apart from rounding belong to the bin above it.
_EDGE = 1e-9


class Histogram(NamedTuple):
    counts: Counts
    edges: Floats  #: one more than counts

    @property
    def centres(self) -> Floats:
        middle: Floats = (self.edges[:-1] + self.edges[1:]) / 2
        return middle


class Sinogram(NamedTuple):
    counts: npt.NDArray[np.int32]  #: ``[plane][angle][radial]``
    angles: Floats  #: of each row, radians
    radial_mm: Floats  #: of each column
    planes_mm: Floats  #: z of each plane


class Rates(NamedTuple):
    seconds: Floats  #: edges of the intervals, from the first
    prompts: Floats  #: per second; of singles: all
    delayeds: Floats


def energy_spectrum(
    source: Source, bin_keV: float = 4.0, up_to_keV: float = 1000.0, kind: Kind = "prompt"
) -> Histogram:
    """Energies of both crystals of each pair, or of singles. Energies beyond the last bin are left out."""
    _check_positive(bin_keV=bin_keV, up_to_keV=up_to_keV)
    bins = max(1, round(up_to_keV / bin_keV))
    counts = np.zeros(bins, np.int64)
    for block in _blocks(source, kind):
        for name in ("energy_a", "energy_b") if block.dtype == COINCIDENCE else ("energy",):
            bin_of = (block[name] / np.float32(bin_keV)).astype(np.int64)
            counts += np.bincount(bin_of[(bin_of >= 0) & (bin_of < bins)], minlength=bins)
    return Histogram(counts, np.arange(bins + 1) * float(bin_keV))


def crystal_map(source: Source, scanner: Scanner, kind: Kind = "prompt") -> Counts:
    """``[ring][in_ring]``: how often each crystal was hit: the ring unrolled, as seen from outside with z upwards
    when row 0 is drawn at the bottom. Of the long form ``[crystal]``. For pairs, both crystals count."""
    counts = np.zeros(scanner.crystal_count, np.int64)
    for block in _blocks(source, kind):
        for name in ("crystal_a", "crystal_b") if block.dtype == COINCIDENCE else ("crystal",):
            counts += np.bincount(block[name], minlength=scanner.crystal_count)
    return counts.reshape(scanner.rings, scanner.crystals_in_ring) if scanner.is_ring else counts


def time_differences(pairs: Source, window_ticks: int, kind: Kind = "prompt") -> tuple[npt.NDArray[np.int64], Counts]:
    """(ticks, counts) for each whole tick from -window to window. The difference is the time of the crystal with the
    larger number less that of the one with the smaller: with both signs, unlike ``dt``."""
    size = 2 * window_ticks + 1
    counts = np.zeros(size, np.int64)
    for block in _blocks(pairs, kind, with_singles=False):
        dt = block["dt"].astype(np.int64)
        signed = np.where(block["crystal_b"] > block["crystal_a"], dt, -dt) + window_ticks
        counts += np.bincount(signed[(signed >= 0) & (signed < size)], minlength=size)
    return np.arange(-window_ticks, window_ticks + 1), counts


def rates(source: Source, tick_ps: float, interval_s: float, begin_ticks: int, end_ticks: int) -> Rates:
    """Records per second of detector time in intervals from ``begin_ticks`` to ``end_ticks``. The last interval may be
    shorter; its rate is still correct."""
    _check_positive(tick_ps=tick_ps, interval_s=interval_s)
    length = max(1, round(interval_s * 1e12 / tick_ps))
    edges = np.append(np.arange(begin_ticks, end_ticks, length, dtype=np.int64), np.int64(end_ticks))
    bins = len(edges) - 1
    counts = np.zeros((2, max(bins, 0)), np.int64)
    for block in _blocks(source, "all"):
        interval = (block["time"].astype(np.int64) - begin_ticks) // length
        inside = (interval >= 0) & (interval < bins)
        delayed = block["kind"] == DELAYED if block.dtype == COINCIDENCE else np.zeros(len(block), bool)
        counts[0] += np.bincount(interval[inside & ~delayed], minlength=bins)
        counts[1] += np.bincount(interval[inside & delayed], minlength=bins)
    widths = np.diff(edges) * tick_ps * 1e-12
    return Rates((edges - begin_ticks) * tick_ps * 1e-12, counts[0] / widths, counts[1] / widths)


def michelogram(pairs: Source, scanner: Scanner, kind: Kind = "prompt") -> Counts:
    """``[ring][ring]``: pairs by the rings of the two crystals, first the one with the smaller place around the ring:
    lines on opposite sides of the diagonal are tilted in opposite directions. Raises ScannerError for the long form, which has
    no rings."""
    n, rings = scanner.crystals_in_ring, scanner.rings
    counts = np.zeros(rings * rings, np.int64)
    for block in _blocks(pairs, kind, with_singles=False):
        a, b = block["crystal_a"].astype(np.int64), block["crystal_b"].astype(np.int64)
        in_order = a % n <= b % n
        place = np.where(in_order, a // n * rings + b // n, b // n * rings + a // n)
        counts += np.bincount(place, minlength=rings * rings)
    return counts.reshape(rings, rings)


def sinogram(
    pairs: Source,
    scanner: Scanner,
    kind: Kind = "prompt",
    angles: int | None = None,
    radial: int | None = None,
    radius_mm: float | None = None,
    depth_mm: float = 0.0,
) -> Sinogram:
    """Single-slice rebinned: a pair counts in the plane half way between its rings, ring_a + ring_b of
    2 * ``rings`` - 1, at the angle phi and the distance s of its line: s = x cos phi + y sin phi for every point of
    it, 0 <= phi < pi. By default half as many angles as crystals in the ring, and bins of s half a crystal wide out
    to the ring. Lines end ``depth_mm`` behind the front faces. Pairs further out than ``radius_mm`` are left out.

    Of the long form planes are half of the shortest crystal apart along the axis, and a pair counts in that nearest to the
    middle of its line; angles and bins of s are as fine as the narrowest crystal, out to the furthest front face."""
    planes = _planes(scanner)
    radius = radius_mm or _radius_mm(scanner)
    pitch = scanner.crystal_pitch_y_mm if scanner.is_ring else float(scanner.sizes_mm()[:, 1].min())
    angles = angles or (scanner.crystals_in_ring // 2 if scanner.is_ring else max(1, round(np.pi * radius / pitch)))
    radial = radial or max(1, round(2 * radius / (pitch / 2)))
    bins = _LineBins(scanner, angles, radial, radius, depth_mm)
    counts = np.zeros(len(planes.mm) * angles * radial, np.int32)
    for block in _blocks(pairs, kind, with_singles=False):
        a, b = block["crystal_a"].astype(np.int64), block["crystal_b"].astype(np.int64)
        line = bins.of(a, b)
        place = planes.of(a, b) * (angles * radial) + line
        found, times = np.unique(place[line >= 0], return_counts=True)
        counts[found] += times.astype(np.int32)
    step = 2 * radius / radial
    return Sinogram(
        counts.reshape(-1, angles, radial),
        (np.arange(angles) + 0.5) * np.pi / angles,
        (np.arange(radial) + 0.5) * step - radius,
        planes.mm,
    )


def _radius_mm(scanner: Scanner) -> float:
    if scanner.is_ring:
        return scanner.ring_radius_mm
    return float(np.hypot(*scanner.positions_mm()[:, :2].T).max())


class _Planes(NamedTuple):
    mm: Floats  #: z of each
    of: Callable[[Counts, Counts], Counts]  #: the plane of pairs of crystals


def _planes(scanner: Scanner) -> _Planes:
    if scanner.is_ring:
        n, z = scanner.crystals_in_ring, scanner.axial_mm
        both = z[:, None] + z[None, :]
        # Gaps between blocks make the ring pairs of one plane differ slightly: takes the mean of the most direct ones.
        mm = np.array([both[p // 2, p - p // 2] / 2 for p in range(2 * scanner.rings - 1)])
        return _Planes(mm, lambda a, b: a // n + b // n)
    at = scanner.positions_mm()[:, 2]
    low, step = float(at.min()), float(scanner.sizes_mm()[:, 2].min()) / 2
    count = 1 + round((float(at.max()) - low) / step)

    def plane(a: Counts, b: Counts) -> Counts:
        nearest = np.floor(((at[a] + at[b]) / 2 - low) / step + 0.5 + _EDGE)
        planes: Counts = np.minimum(nearest.astype(np.int64), count - 1)
        return planes

    return _Planes(low + step * np.arange(count), plane)


class _LineBins:
    """Angle * radial + radial bin of the line of two crystals; -1 outside."""

    def __init__(self, scanner: Scanner, angles: int, radial: int, radius: float, depth_mm: float) -> None:
        self._angles, self._radial, self._radius = angles, radial, radius
        self._xy = scanner.positions_mm(depth_mm)[:, :2]
        self._columns = scanner.crystals_in_ring if scanner.is_ring else None
        # In a ring the lines of two columns of crystals are alike.
        self._table: npt.NDArray[np.int32] | None = None
        if self._columns is not None:
            column = np.arange(self._columns)
            self._table = self._find(column[:, None], column[None, :])

    def of(self, a: Counts, b: Counts) -> npt.NDArray[np.int32]:
        if self._table is not None and self._columns is not None:
            return np.asarray(self._table[a % self._columns, b % self._columns])
        return self._find(a, b)

    def _find(self, a: Counts, b: Counts) -> npt.NDArray[np.int32]:
        # Rounding must not decide which crystal comes first.
        first, second = self._xy[np.minimum(a, b)], self._xy[np.maximum(a, b)]
        x, y = first[..., 0], first[..., 1]
        phi = np.arctan2(x - second[..., 0], second[..., 1] - y)  # of the normal: (-dy, dx) turned upwards
        phi = np.where(phi < 0, phi + np.pi, phi)
        phi = np.where(phi >= np.pi - _EDGE, phi - np.pi, phi)
        s = x * np.cos(phi) + y * np.sin(phi)
        angle = np.minimum((phi * (self._angles / np.pi) + _EDGE).astype(np.int32), self._angles - 1)
        column = np.floor((s + self._radius) * (self._radial / (2 * self._radius)) + _EDGE).astype(np.int32)
        inside = (column >= 0) & (column < self._radial) & (a != b)
        return np.asarray(np.where(inside, angle * self._radial + column, -1), np.int32)


def _check_positive(**numbers: float) -> None:
    for name, number in numbers.items():
        if not 0 < number < float("inf"):
            raise ValueError(f"{name} {number}: expected a number above 0")


def _blocks(source: Source, kind: Kind, with_singles: bool = True) -> Iterator[Records]:
    blocks: Iterable[Records]
    if isinstance(source, RecordBlocks):
        blocks = source.blocks()
    elif isinstance(source, np.ndarray):
        blocks = (source[at : at + (1 << 16)] for at in range(0, len(source), 1 << 16))
    elif isinstance(source, Iterable):
        blocks = source
    else:
        raise TypeError(f"{type(source).__name__}: expected run.coincidences, run.singles or an array of their records")
    wanted: dict[str, Any] = {"prompt": PROMPT, "delayed": DELAYED, "all": None}
    if kind not in wanted:
        raise ValueError(f"kind {kind!r}: expected prompt, delayed or all")
    for block in blocks:
        if block.dtype != COINCIDENCE and not (with_singles and block.dtype == SINGLE):
            names = ", ".join(block.dtype.names or ()) or str(block.dtype)
            expected = "coincidences or singles with all fields" if with_singles else "coincidences with all fields"
            raise TypeError(f"records of {names:.80}: expected {expected}")
        if block.dtype == SINGLE or wanted[kind] is None:
            yield block
        else:
            yield block[block["kind"] == wanted[kind]]
