"""The detection efficiencies in a PETSIRD file."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from petacq.normalisation import Normalisation
from petacq.petsird_events import Bins
from petacq.scanner import Scanner
from petacq.scanner.arranged_scanner import ArrangedScanner
from petacq.scanner.good_pairs import modules_pair
from petacq.scanner.petsird_types import PetsirdType

#: In all tables of a normalisation together; more make the header too long.
MOST_PAIR_EFFICIENCIES = 1 << 22
#: In the one table of a file without them, whose numbers are all 1.
_MOST_ONES = 1 << 25


@dataclass(frozen=True)
class Pairs:
    """What pairs of modules of two types have in common."""

    #: [module][module]: the group of a pair; -1: not in coincidence
    table: Callable[[PetsirdType, PetsirdType], npt.NDArray[np.int32]]
    #: [group]: [bin][bin]; None: too many bins
    groups: Callable[[PetsirdType, PetsirdType], Sequence[npt.NDArray[np.float32]]] | None
    of_normalisation: bool  #: the groups have its factors; otherwise all are 1


def pairs_of(scanner: Scanner, least: int, normalisation: Normalisation | None, bins: Bins) -> Pairs:
    """Those of the normalisation if they fit into a header, otherwise one group for all pairs in coincidence. Pairs of
    modules of the long form are one group."""
    if isinstance(scanner, ArrangedScanner):
        return _pairs_of_arrangement(scanner, least, bins)
    (of,) = bins.types
    size = of.elements * bins.energies
    if normalisation is not None:
        table = module_pairs(scanner, least, True)
        if size**2 * (int(table.max()) + 1) <= MOST_PAIR_EFFICIENCIES:
            groups = of_module_pairs(normalisation, table, bins)
            return Pairs(lambda a, b: table, lambda a, b: groups, True)
    plain = module_pairs(scanner, least, False)
    return Pairs(lambda a, b: plain, _ones(bins), False)


def _ones(bins: Bins) -> Callable[[PetsirdType, PetsirdType], Sequence[npt.NDArray[np.float32]]] | None:
    sizes = [of.elements * bins.energies for of in bins.types]
    if sum(sizes) ** 2 > _MOST_ONES:
        return None

    def ones(a: PetsirdType, b: PetsirdType) -> Sequence[npt.NDArray[np.float32]]:
        # One row stands for all of them: it takes no memory.
        row = np.ones(b.elements * bins.energies, np.float32)
        return [np.broadcast_to(row, (a.elements * bins.energies, len(row)))]

    return ones


def _pairs_of_arrangement(scanner: ArrangedScanner, least: int, bins: Bins) -> Pairs:
    def table(a: PetsirdType, b: PetsirdType) -> npt.NDArray[np.int32]:
        first, second = (scanner.module(of.crystals[:, 0]) for of in (a, b))
        return np.where(modules_pair(scanner, first, second, least), 0, -1).astype(np.int32)

    modules = sum(of.modules for of in bins.types)
    return Pairs(table, _ones(bins) if modules**2 <= _MOST_ONES else None, False)


def rows_of(values: npt.NDArray[np.float32]) -> list[list[float]]:
    """As lists. Rows that are one and the same in memory are one list."""
    if values.strides[0] == 0:
        return [values[0].tolist()] * len(values)
    rows: list[list[float]] = values.tolist()
    return rows


def of_bins(normalisation: Normalisation | None, bins: Bins) -> list[npt.NDArray[np.float32]]:
    """[type]: of every detection bin."""
    values = np.ones(len(bins.element), np.float32) if normalisation is None else normalisation.efficiency
    return [np.repeat(of, bins.energies) for of in bins.by_type(values)]


def module_pairs(scanner: Scanner, least: int, by_rows: bool) -> npt.NDArray[np.int32]:
    """[module][module]: the group of a pair; -1: not in coincidence, as the modules are too near. All pairs form one
    group, or with ``by_rows`` one for each number of modules from one to the other and each pair of rows."""
    rows = scanner.modules_z
    place, row = np.divmod(np.arange(scanner.bdm_count), rows)
    up = (place[None, :] - place[:, None]) % scanner.modules_in_ring
    apart = np.minimum(up, scanner.modules_in_ring - up)
    # The factors of opposite modules depend on which of them has the lower number.
    half = 2 * up == scanner.modules_in_ring
    turn = np.where(half & (place[:, None] > place[None, :]), scanner.modules_in_ring, up)
    group = (turn * rows + row[:, None]) * rows + row[None, :] if by_rows else np.zeros_like(up)
    return np.where(apart >= least, group, -1).astype(np.int32)


def of_module_pairs(
    normalisation: Normalisation, table: npt.NDArray[np.int32], bins: Bins
) -> list[npt.NDArray[np.float32]]:
    """[group]: efficiencies of the pairs of bins of two modules, for the integral of positrons per mm^3 over mm:
    face^2 cos cos / (2 pi distance^2), times the normalisation. A group without modules has the values 0."""
    s = normalisation.scanner
    (of,) = bins.types
    in_module, crystal_of = of.elements, of.crystals
    front, outward = s.positions_mm(), s.outward()
    scale = (s.crystal_pitch_y_mm * s.crystal_pitch_z_mm) ** 2 / (2 * math.pi)
    tables = []
    for group in range(int(table.max()) + 1):
        members = np.argwhere(table == group)
        if len(members) == 0:
            tables.append(np.zeros((in_module * bins.energies,) * 2, np.float32))
            continue
        a, b = crystal_of[members[0][0]][:, None], crystal_of[members[0][1]][None, :]
        line = front[a] - front[b]
        squares = np.maximum((line**2).sum(-1), 1e-12)
        cosines = (line * outward[a]).sum(-1) * -(line * outward[b]).sum(-1) / squares
        # Crystals side by side in one module do not see each other.
        values = scale * np.maximum(cosines, 1e-6) / squares * normalisation.of_lines(a, b)
        tables.append(np.repeat(np.repeat(values, bins.energies, 0), bins.energies, 1).astype(np.float32))
    return tables
