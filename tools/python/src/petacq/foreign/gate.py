"""Reads singles and coincidences of GATE 9 and 10, from ROOT files (with uproot) and HDF5 files (with h5py)."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from petacq.errors import PetacqError
from petacq.foreign.delayeds import Delayeds
from petacq.foreign.records_file import (
    UNKNOWN_CLOCK,
    UNKNOWN_RULES,
    UNKNOWN_TIMES,
    Columns,
    ForeignRecords,
    pairs_of,
    ticks_of,
)
from petacq.foreign.tables import Table, tables_in
from petacq.scanner.scanner import Scanner

_EXPECTED = "expected the description of the simulated scanner"
_TOLERANCE_MM = 0.01
# In sizes of a crystal, root mean squares. Photons that come aslant shift the mean place within a crystal less. Places that are
# blurred by twice the size of a crystal (full width) still fit.
_MOST_OFF, _MOST_SPREAD = 0.25, 1.0
_ENOUGH = 100  #: records


@dataclass(frozen=True)
class _Names:
    """The columns of a version of GATE; those of pairs have 1 and 2 at the end."""

    version: str
    time: str
    time_ps: float
    energy: str
    place: tuple[str, str, str]
    volume: tuple[str, ...]  #: that say in which crystal it was; those that are there


_VERSIONS = (
    _Names("9", "time", 1e12, "energy", ("globalPosX", "globalPosY", "globalPosZ"),
           ("gantryID", "rsectorID", "moduleID", "submoduleID", "crystalID", "layerID")),
    _Names("10", "GlobalTime", 1e3, "TotalEnergyDeposit", ("PostPosition_X", "PostPosition_Y", "PostPosition_Z"),
           ("PreStepUniqueVolumeID",)),
)


def read_gate(
    path: str | os.PathLike[str], description: Mapping[str, Any], tree: str | None = None, delayed: bool = False, delay_ns: float = 0.0
) -> ForeignRecords:
    """``description``: of the scanner. ``tree``: of singles or coincidences; needed if the file has several of them.
    ``delayed``: pairs are delayeds, with ``delay_ns`` in their times.

    Raises PetacqError, OSError."""
    table, others = _open(path, tree)
    names, suffixes = _version(table, path)
    delayeds = None
    if delayed:
        if not suffixes[0]:
            raise PetacqError(f"{path}: --delayed: expected coincidences, found singles")
        delayeds = Delayeds(str(path), delay_ns, names.time_ps / 1000, _prompts_apart(others, names))
    scanner = Scanner.from_json(description)
    records = ForeignRecords("coincidences" if suffixes[0] else "singles", description, iter(()), format="gate",
                             version=names.version, file=os.path.basename(path))
    records.unknown = [UNKNOWN_TIMES, UNKNOWN_CLOCK, UNKNOWN_RULES]
    records.pieces = _pieces(table, names, suffixes, _Volumes(scanner, str(path)), scanner.tick_ps, delayeds)
    return records


def _open(path: str | os.PathLike[str], tree: str | None) -> tuple[Table, list[Table]]:
    """The table, and the others in the file that GATE wrote."""
    found = tables_in(path)
    if not found:
        raise PetacqError(f"{path}: expected a tree, or a group with data sets, found none")
    usable = {name: table for name, table in found.items() if _match(table)}
    if tree is not None:
        if tree not in found:
            raise PetacqError(f"{path}: no tree {tree!r}; expected one of {', '.join(found)}")
        return found[tree], [table for name, table in usable.items() if name != tree]
    if len(usable) != 1:
        raise PetacqError(f"{path}: expected --tree with one of {', '.join(usable or found)}")
    return next(iter(usable.values())), []


def _prompts_apart(tables: list[Table], names: _Names) -> float | None:
    """The longest time between the photons of a prompt; None if the file has none. Other delayeds have longer ones."""
    columns = [names.time + suffix for suffix in ("1", "2")]
    longest = []
    for table in tables:
        if all(name in table.names for name in columns):
            apart = [np.abs(np.subtract(*(np.asarray(piece[name], float) for name in columns))) for piece in table.pieces(columns)]
            longest += [max(piece.max() for piece in apart if len(piece))] if any(map(len, apart)) else []
    return min(longest, default=None)


def _match(table: Table) -> tuple[_Names, tuple[str, ...]] | None:
    for names in _VERSIONS:
        for suffixes in (("",), ("1", "2")):
            needed = [name + suffix for name in (names.time, names.energy, *names.place) for suffix in suffixes]
            if all(name in table.names for name in needed):
                return names, suffixes
    return None


def _version(table: Table, path: Any) -> tuple[_Names, tuple[str, ...]]:
    found = _match(table)
    if found is None:
        first, second = ([of.time, of.energy, *of.place] for of in _VERSIONS)
        raise PetacqError(f"{path}: expected the columns {', '.join(first)} (GATE 9) or {', '.join(second)} (GATE 10), those of pairs "
                          f"with 1 and 2 at their ends; found {', '.join(table.names)}")
    names, suffixes = found
    if not [name for name in names.volume if name + suffixes[0] in table.names]:
        raise PetacqError(f"{path}: expected {' or '.join(names.volume)}, which tell the crystal")
    return found


class _Volumes:
    """Which crystal each volume of the simulation is: the one that contains the mean place of its first records."""

    def __init__(self, scanner: Scanner, path: str) -> None:
        self._front, self._axes = scanner.positions_mm(), scanner.axes()
        self._sizes = np.broadcast_to(scanner.sizes_mm(), self._front.shape)
        self._path = path
        self._crystal_of: dict[Any, int] = {}
        self._volume_in: dict[int, Any] = {}
        # By crystal: records, and the sums of their places along y and z from its middle, in its sizes, and of their squares.
        self._records = np.zeros(len(self._front))
        self._sums, self._squares = np.zeros((2, len(self._front), 2))

    def crystals(self, keys: Any, places: Any) -> Any:
        """``[record]``"""
        kinds, of = np.unique(keys, axis=0, return_inverse=True)
        of = of.ravel()
        crystals = np.empty(len(kinds), np.int64)
        sums = np.column_stack([np.bincount(of, places[:, axis], len(kinds)) for axis in range(3)])
        means = sums / np.bincount(of, minlength=len(kinds))[:, None]
        for number, kind in enumerate(kinds.tolist()):
            key = tuple(kind) if isinstance(kind, list) else kind
            if key not in self._crystal_of:
                self._crystal_of[key] = self._at(means[number], key)
            crystals[number] = self._crystal_of[key]
        found = crystals[of]
        self._add(found, places)
        return found

    def _at(self, point: Any, key: Any) -> int:
        depth, along_y, along_z = np.einsum("cx,cax->ac", point - self._front, self._axes)
        inside = (depth >= -_TOLERANCE_MM) & (depth <= self._sizes[:, 0] + _TOLERANCE_MM)
        inside &= np.abs(along_y) <= self._sizes[:, 1] / 2 + _TOLERANCE_MM
        inside &= np.abs(along_z) <= self._sizes[:, 2] / 2 + _TOLERANCE_MM
        if not inside.any():
            raise PetacqError(f"{self._path}: volume {key} at {np.round(point, 3).tolist()} mm is in no crystal of the scanner; {_EXPECTED}")
        crystal = int(np.flatnonzero(inside)[np.hypot(along_y, along_z)[inside].argmin()])
        if crystal in self._volume_in:
            raise PetacqError(f"{self._path}: volumes {self._volume_in[crystal]} and {key}, at {np.round(point, 3).tolist()} mm, are both "
                              f"in crystal {crystal}; {_EXPECTED}, with a crystal for each volume")
        self._volume_in[crystal] = key
        return crystal

    def _add(self, crystals: Any, places: Any) -> None:
        self._records += np.bincount(crystals, minlength=len(self._records))
        from_front = places - self._front[crystals]
        for k, axis in enumerate((1, 2)):
            off = (from_front * self._axes[crystals, axis]).sum(axis=1) / self._sizes[crystals, axis]
            self._sums[:, k] += np.bincount(crystals, off, len(self._records))
            self._squares[:, k] += np.bincount(crystals, off**2, len(self._records))

    def check(self) -> None:
        """After the last record: whether volumes and crystals are at the same places, and of one size. A turn by more than half
        a crystal, or another pitch, would move whole volumes; each alone may be within a crystal, the neighbour's."""
        several = self._records > 1
        count, sums, squares = self._records[several], self._sums[several], self._squares[several]
        if count.sum() < _ENOUGH:
            return
        # The mean square of the means, without that of chance.
        apart = ((sums**2 - squares) / (count - 1)[:, None]).sum(axis=0) / count.sum()
        spread = squares.sum(axis=0) / count.sum()
        for k, axis in enumerate("yz"):
            off, wide = math.sqrt(max(apart[k], 0.0)), math.sqrt(spread[k])
            if off > _MOST_OFF:
                raise PetacqError(f"{self._path}: volumes are {off:.2f} of a crystal from the middle of theirs, along {axis}; {_EXPECTED}, "
                                  f"and at most {_MOST_OFF}")
            if wide > _MOST_SPREAD:
                raise PetacqError(f"{self._path}: records of a volume are {wide:.2f} crystals from the middle of theirs, along {axis}; "
                                  f"{_EXPECTED}, with a crystal for each volume")


def _pieces(
    table: Table, names: _Names, suffixes: tuple[str, ...], volumes: _Volumes, tick_ps: float, delayeds: Delayeds | None
) -> Iterator[Columns]:
    ids = [name for name in names.volume if name + suffixes[0] in table.names]
    wanted = [name + suffix for name in (names.time, names.energy, *names.place, *ids) for suffix in suffixes]
    for piece in table.pieces(wanted):
        times = [piece[names.time + suffix] for suffix in suffixes]
        if not len(times[0]):
            continue
        if delayeds:
            times = list(delayeds.without_delay((times[0], times[1])))
        photons = []
        for suffix, time in zip(suffixes, times):
            places = np.column_stack([np.asarray(piece[name + suffix], float) for name in names.place])
            keys = [np.asarray(piece[name + suffix]).astype(str if len(ids) == 1 else np.int64) for name in ids]
            crystal = volumes.crystals(keys[0] if len(keys) == 1 else np.column_stack(keys), places)
            energy = np.asarray(piece[names.energy + suffix], float) * 1000
            if not (np.isfinite(energy) & (energy >= 0)).all():
                raise PetacqError(f"{names.energy + suffix}: expected finite energies of at least 0")
            photons.append((ticks_of(time, names.time_ps, tick_ps, names.time + suffix), crystal, energy))
        if len(photons) == 1:
            yield dict(zip(("time", "crystal", "energy"), photons[0]))
        else:
            (time_a, crystal_a, energy_a), (time_b, crystal_b, energy_b) = photons
            yield pairs_of(time_a, time_b, crystal_a, crystal_b, energy_a, energy_b, delayeds is not None)
    volumes.check()
    if delayeds:
        delayeds.check()
