"""Finds modules in the crystals of a file of another program: grids of crystals of one direction, layer behind layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from petacq.errors import ScannerError
from petacq.scanner.arrangement import Integers, Millimetres
from petacq.scanner.find_turn import turn_of
from petacq.scanner.module_overlaps import Boxes, overlaps
from petacq.scanner.place_modules import axes_of

#: Directions are compared with each other up to so many; more are told apart by their digits alone.
_MOST_COMPARED = 4096


@dataclass(frozen=True)
class Crystals:
    """What a file says about crystals."""

    front_mm: Millimetres  #: ``[crystal][x, y, z]``: the middle of its front face
    outward: Millimetres  #: unit vectors, away from the front
    sizes_mm: Millimetres  #: ``[crystal][length, size along y, size along z]``
    material: npt.NDArray[np.int64]  #: numbers of materials
    tolerance_mm: float  #: places that differ by less are the same
    #: Degrees by which the grid is turned about the direction, as ``turn_deg`` of a description; None: the file does not say.
    turn_deg: Millimetres | None = None
    #: Numbers of the modules that the file says they are in; None: it does not say.
    module: Integers | None = None

    def __len__(self) -> int:
        return len(self.front_mm)


@dataclass(frozen=True)
class FoundLayer:
    """A grid. Places are along the directions of its module, from the axis of the scanner."""

    crystals: Integers  #: ``[column][row]``: numbers in the file
    depth: float  #: of the front faces, along the direction of the module
    y: Millimetres  #: ``[column]``: centres
    z: Millimetres  #: ``[row]``
    y_sizes: Millimetres
    z_sizes: Millimetres
    length: float
    material: int

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """Lowest and highest y, lowest and highest z."""
        return (
            float(self.y[0] - self.y_sizes[0] / 2),
            float(self.y[-1] + self.y_sizes[-1] / 2),
            float(self.z[0] - self.z_sizes[0] / 2),
            float(self.z[-1] + self.z_sizes[-1] / 2),
        )

    @property
    def corners(self) -> Millimetres:
        """The lowest and the highest depth, y and z."""
        low_y, high_y, low_z, high_z = self.extent
        return np.array([[self.depth, low_y, low_z], [self.depth + self.length, high_y, high_z]])


@dataclass(frozen=True)
class FoundModule:
    axes: Millimetres  #: rows: outward, along y, along z
    turn_deg: float
    layers: Sequence[FoundLayer]  #: from the front

    @property
    def middle(self) -> Millimetres:
        """Of its front face: depth, y and z along its directions."""
        low_y, high_y, low_z, high_z = self.layers[0].extent
        return np.array([self.layers[0].depth, (low_y + high_y) / 2, (low_z + high_z) / 2])


def find_modules(crystals: Crystals, gap_mm: float | None) -> list[FoundModule]:
    """``gap_mm``: where the file does not say what a module is, crystals further apart than this are of different ones; None:
    half of the smallest crystal. Raises ScannerError."""
    if not len(crystals):
        raise ScannerError("expected crystals, found none")
    if gap_mm is None:
        gap_mm = float(crystals.sizes_mm[:, 1:].min()) / 2
    modules: list[FoundModule] = []
    for members in _of_one_direction(crystals):
        outward = crystals.outward[members].mean(0)
        turn = _turn(crystals, members, outward, gap_mm) if crystals.turn_deg is None else float(crystals.turn_deg[members[0]])
        axes = axes_of(outward, turn)
        places = crystals.front_mm[members] @ axes.T
        layers = []
        for part in _split(places[:, 0], crystals.tolerance_mm):
            layers += list(_grids(crystals, members[part], places[part], gap_mm))
        if crystals.module is not None:
            modules.append(FoundModule(axes, turn, sorted(layers, key=lambda layer: layer.depth)))
        else:
            modules += [FoundModule(axes, turn, stack) for stack in _stacks(layers, gap_mm, crystals.tolerance_mm)]
    modules = [part for module in modules for part in _in_order(module)]
    _check_overlaps(modules)
    return modules


def _turn(crystals: Crystals, members: Integers, outward: Millimetres, gap_mm: float) -> float:
    places, sizes = crystals.front_mm[members] @ axes_of(outward, 0.0).T, crystals.sizes_mm[members]
    planes = [(places[of, 1:], sizes[of, 1:]) for of in _split(places[:, 0], crystals.tolerance_mm)]
    return turn_of(planes, gap_mm, crystals.tolerance_mm)


def _in_order(module: FoundModule) -> list[FoundModule]:
    """Layers one behind the other. Grids side by side are modules of their own."""
    parts: list[list[FoundLayer]] = []
    for layer in module.layers:
        for part in parts:
            if part[-1].depth + part[-1].length <= layer.depth + 1e-3:
                part.append(layer)
                break
        else:
            parts.append([layer])
    return [replace(module, layers=part) for part in parts]


def _check_overlaps(modules: Sequence[FoundModule]) -> None:
    """Raises ScannerError."""
    layers = [layer for module in modules for layer in module.layers]
    module = np.repeat(np.arange(len(modules)), [len(of.layers) for of in modules])
    corners = np.array([layer.corners for layer in layers])
    axes = np.array([of.axes for of in modules])[module]
    middles = np.einsum("be,bex->bx", corners.mean(1), axes)
    pairs = overlaps(Boxes(module, middles, axes, np.diff(corners, axis=1)[:, 0] / 2))
    if len(pairs):
        a, b = (int(layers[k].crystals[0, 0]) for k in pairs[0])
        raise ScannerError(f"expected modules that do not overlap; that of crystal {a} overlaps that of crystal {b}")


def _of_one_direction(crystals: Crystals) -> Iterator[Integers]:
    """Numbers of crystals with the same direction and turn; and of one module, if the file says so."""
    keys = [np.round(crystals.outward, 5)]
    if crystals.turn_deg is not None:
        keys.append(np.round(crystals.turn_deg, 3)[:, None])
    if crystals.module is not None:
        keys.append(crystals.module[:, None].astype(float))
    distinct, group = np.unique(np.concatenate(keys, axis=1) + 0.0, axis=0, return_inverse=True)
    group = group.ravel()
    if crystals.module is None and len(distinct) <= _MOST_COMPARED:
        group = _joined(distinct)[group]
    order = np.argsort(group, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(group[order])) + 1)


def _joined(directions: npt.NDArray[np.float64]) -> Integers:
    """The first of the directions that each is nearly the same as."""
    first = np.arange(len(directions))
    for k in range(len(directions)):
        if first[k] == k:
            near = np.abs(directions[k + 1 :] - directions[k]).max(1, initial=0) < 5e-4
            later = first[k + 1 :]
            later[near & (later == np.arange(k + 1, len(directions)))] = k
    return first


def _split(values: Millimetres, apart: float) -> list[Integers]:
    """Numbers of values in groups that are further apart, from the lowest."""
    order = np.argsort(values, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(values[order]) > apart) + 1)


def _grids(crystals: Crystals, members: Integers, places: Millimetres, gap_mm: float) -> Iterator[FoundLayer]:
    """Crystals of one depth as grids."""
    sizes = crystals.sizes_mm[members]
    kinds = np.column_stack([np.round(sizes[:, 0], 4), crystals.material[members]])
    whole = crystals.module is not None and (kinds == kinds[0]).all()
    for part in [np.arange(len(members))] if whole else _apart(places, sizes, kinds, gap_mm):
        yield from _as_grids(crystals, members[part], places[part], gap_mm)


def _apart(places: Millimetres, sizes: Millimetres, kinds: npt.NDArray[Any], gap_mm: float) -> list[Integers]:
    """Numbers of crystals in groups with gaps around them, and of one kind."""
    _, kind = np.unique(kinds, axis=0, return_inverse=True)
    waiting = [np.flatnonzero(kind.ravel() == k) for k in range(int(kind.max()) + 1)]
    done = []
    while waiting:
        part = waiting.pop()
        for axis in (1, 2):
            order = part[np.argsort(places[part, axis], kind="stable")]
            low = places[order, axis] - sizes[order, axis] / 2
            high = np.maximum.accumulate(places[order, axis] + sizes[order, axis] / 2)
            cut = np.flatnonzero(low[1:] - high[:-1] > gap_mm) + 1
            if len(cut):
                waiting += np.split(order, cut)
                break
        else:
            done.append(part)
    return sorted(done, key=lambda part: tuple(places[part].min(0)[1:].tolist()))


def _as_grids(crystals: Crystals, members: Integers, places: Millimetres, gap_mm: float) -> Iterator[FoundLayer]:
    """One grid if they are one, otherwise one for each row."""
    tolerance = crystals.tolerance_mm
    columns, rows = _split(places[:, 1], tolerance), _split(places[:, 2], tolerance)
    numbers = np.full((len(columns), len(rows)), -1)
    column, row = np.empty((2, len(members)), np.int64)
    for of, groups in ((column, columns), (row, rows)):
        for k, group in enumerate(groups):
            of[group] = k
    numbers[column, row] = np.arange(len(members))
    sizes = crystals.sizes_mm[members]
    if numbers.min() >= 0 and len(members) == numbers.size:
        y_sizes, z_sizes = sizes[numbers, 1], sizes[numbers, 2]
        if np.ptp(y_sizes, axis=1).max() <= tolerance and np.ptp(z_sizes, axis=0).max() <= tolerance:
            yield FoundLayer(
                crystals=members[numbers],
                depth=float(places[:, 0].mean()),
                y=places[numbers, 1].mean(1),
                z=places[numbers, 2].mean(0),
                y_sizes=y_sizes.mean(1),
                z_sizes=z_sizes.mean(0),
                length=float(sizes[:, 0].mean()),
                material=int(crystals.material[members[0]]),
            )
            return
    if len(rows) == 1:
        if len(columns) < len(members):
            raise ScannerError(f"crystal {int(members[0])}: expected a place of its own, found another crystal there")
        for group in columns:
            yield from _as_grids(crystals, members[group], places[group], gap_mm)
        return
    # What was between the crystals of a row is of other rows.
    for group in rows:
        for part in _apart(places[group], sizes[group], np.zeros((len(group), 1)), gap_mm):
            yield from _as_grids(crystals, members[group[part]], places[group[part]], gap_mm)


def _stacks(layers: Sequence[FoundLayer], gap_mm: float, tolerance: float) -> list[list[FoundLayer]]:
    """Layers one behind the other, with less than the gap between them, as those of one module."""
    stacks: list[list[FoundLayer]] = []
    for layer in sorted(layers, key=lambda layer: layer.depth):
        before = []
        for stack in stacks:
            apart = layer.depth - stack[-1].depth - stack[-1].length
            if -tolerance <= apart <= gap_mm and _overlap(stack[-1].extent, layer.extent) > 0.5:
                before.append(stack)
        if len(before) == 1:
            before[0].append(layer)
        else:
            stacks.append([layer])
    return stacks


def _overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> float:
    """The common area, as a share of the smaller one."""
    across = min(a[1], b[1]) - max(a[0], b[0])
    along = min(a[3], b[3]) - max(a[2], b[2])
    if across <= 0 or along <= 0:
        return 0.0
    smaller = min((a[1] - a[0]) * (a[3] - a[2]), (b[1] - b[0]) * (b[3] - b[2]))
    return across * along / smaller
