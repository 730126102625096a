"""The detection efficiencies in a PETSIRD file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from petacq.normalisation import Normalisation, PairWeights
from petacq.petsird_events import Bins
from petacq.scanner import Scanner
from petacq.scanner.arranged_scanner import ArrangedScanner
from petacq.scanner.arrangement import Integers
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
    """Those of the normalisation if they fit into a header, otherwise one group for all pairs in coincidence."""
    if normalisation is not None:
        of_normalisation = _of_normalisation(scanner, least, normalisation, bins)
        if of_normalisation is not None:
            return of_normalisation

    def table(a: PetsirdType, b: PetsirdType) -> npt.NDArray[np.int32]:
        return np.where(_good(scanner, least, a, b), 0, -1).astype(np.int32)

    few = scanner.is_ring or sum(of.modules for of in bins.types) ** 2 <= _MOST_ONES
    return Pairs(table, _ones(bins) if few else None, False)


def _of_normalisation(scanner: Scanner, least: int, normalisation: Normalisation, bins: Bins) -> Pairs | None:
    """For the integral of positrons per mm^3 over mm: PairWeights times the factors of the pair. None if they are too many."""

    def table(a: PetsirdType, b: PetsirdType) -> npt.NDArray[np.int32]:
        good = _good(scanner, least, a, b)
        out = np.full(good.shape, -1, np.int32)
        out[good] = np.unique(_alike(scanner, normalisation, a, b)[good], return_inverse=True)[1]
        return out

    numbers = 0
    for first, second in bins.pairs_of_types:
        a, b = bins.types[first], bins.types[second]
        numbers += (int(table(a, b).max()) + 1) * a.elements * b.elements * bins.energies**2
        if numbers > MOST_PAIR_EFFICIENCIES:
            return None
    weights = PairWeights(scanner, normalisation.depth_mm)

    def groups(a: PetsirdType, b: PetsirdType) -> list[npt.NDArray[np.float32]]:
        of_pairs = table(a, b)
        _, firsts = np.unique(of_pairs, return_index=True)
        out = []
        for module_a, module_b in zip(*np.unravel_index(firsts[len(firsts) - 1 - int(of_pairs.max()) :], of_pairs.shape)):
            pair = a.crystals[module_a][:, None], b.crystals[module_b][None, :]
            values = np.where(pair[0] == pair[1], 0, weights.of(*pair) * normalisation.of_lines(*pair))
            out.append(np.repeat(np.repeat(values, bins.energies, 0), bins.energies, 1).astype(np.float32))
        return out

    return Pairs(table, groups, True)


def _ones(bins: Bins) -> Callable[[PetsirdType, PetsirdType], Sequence[npt.NDArray[np.float32]]] | None:
    sizes = [of.elements * bins.energies for of in bins.types]
    if sum(sizes) ** 2 > _MOST_ONES:
        return None

    def ones(a: PetsirdType, b: PetsirdType) -> Sequence[npt.NDArray[np.float32]]:
        # One row stands for all of them: it takes no memory.
        row = np.ones(b.elements * bins.energies, np.float32)
        return [np.broadcast_to(row, (a.elements * bins.energies, len(row)))]

    return ones


def rows_of(values: npt.NDArray[np.float32]) -> list[list[float]]:
    """As lists. Rows that are one and the same in memory are one list."""
    if values.strides[0] == 0:
        return [values[0].tolist()] * len(values)
    rows: list[list[float]] = values.tolist()
    return rows


def of_bins(normalisation: Normalisation | None, bins: Bins) -> list[npt.NDArray[np.float32]]:
    """[type]: of every detection bin; 0 for energies that photons of pairs do not have."""
    values = np.ones(len(bins.element), np.float32) if normalisation is None else normalisation.efficiency
    of_pairs = np.isin(np.arange(bins.energies), bins.pair_energies).astype(np.float32)
    return [np.multiply.outer(of, of_pairs).ravel() for of in bins.by_type(values)]


def _good(scanner: Scanner, least: int, a: PetsirdType, b: PetsirdType) -> npt.NDArray[np.bool_]:
    """``[module][module]``: whether they are in coincidence."""
    first, second = (of.crystals[:, 0] for of in (a, b))
    if isinstance(scanner, ArrangedScanner):
        return modules_pair(scanner, scanner.module(first), scanner.module(second), least)
    up = (scanner.module(second) - scanner.module(first)[:, None]) % scanner.modules_in_ring
    return np.asarray(np.minimum(up, scanner.modules_in_ring - up) >= least)


def _alike(scanner: Scanner, normalisation: Normalisation, a: PetsirdType, b: PetsirdType) -> Integers:
    """``[module][module]``: the same number for pairs of modules whose crystals have the same weights and factors."""
    first, second = a.crystals[:, 0], b.crystals[:, 0]
    if normalisation.classes is not None:
        of = normalisation.classes
        groups: Integers = of.pair_groups()[of.module[first]][:, of.module[second]]
        return groups
    if not scanner.is_ring:
        numbers: Integers = np.arange(a.modules * b.modules).reshape(a.modules, b.modules)
        return numbers
    # In a ring the number of modules from one to the other, and their rows.
    place_a, place_b = scanner.module(first)[:, None], scanner.module(second)
    row_a, row_b = (scanner.bdm(of) // scanner.modules_in_ring for of in (first, second))
    up = (place_b - place_a) % scanner.modules_in_ring
    # The factors of opposite modules depend on which of them has the lower number.
    turn = np.where((2 * up == scanner.modules_in_ring) & (place_a > place_b), scanner.modules_in_ring, up)
    return np.asarray((turn * scanner.modules_z + row_a[:, None]) * scanner.modules_z + row_b)
