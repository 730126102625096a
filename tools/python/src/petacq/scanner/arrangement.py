"""Any arrangement of crystals: types of modules, modules in space, and the numbers of crystals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Millimetres = npt.NDArray[np.float64]


class Address(NamedTuple):
    """Where crystals are among the others. Arrays of the same shape."""

    module: Integers
    layer: Integers  #: from the front
    column: Integers  #: along y
    row: Integers  #: along z


@dataclass(frozen=True)
class Row:
    """Crystals side by side: their centres, rising, in mm from the middle of the module, and their sizes."""

    centres: Millimetres
    sizes: Millimetres

    def __len__(self) -> int:
        return len(self.centres)


@dataclass(frozen=True)
class Layer:
    y: Row
    z: Row
    front_mm: float  #: of its crystals, behind the front face of the module
    length_mm: float
    material: str = "LYSO"
    attenuation_per_cm: float | None = None  #: at 511 keV; None: that of the material

    @property
    def crystal_count(self) -> int:
        return len(self.y) * len(self.z)


@dataclass(frozen=True)
class ModuleType:
    name: str
    layers: Sequence[Layer]  #: from the front
    time_resolution_ps: float | None = None  #: FWHM of one single
    energy_resolution: float | None = None  #: FWHM at 511 keV, a fraction

    @property
    def crystal_count(self) -> int:
        return sum(layer.crystal_count for layer in self.layers)


@dataclass(frozen=True)
class Module:
    type: int
    front_mm: Millimetres  #: middle of the front face
    axes: Millimetres  #: rows: outward, along y, along z; unit vectors at right angles
    group: str = ""
    around: tuple[int, int] | None = field(default=None)  #: place around a ring, and how many there are


@dataclass(frozen=True)
class Arrangement:
    """Crystals are numbered module by module, layer by layer, column by column."""

    types: Sequence[ModuleType]
    modules: Sequence[Module]

    @cached_property
    def first_crystal(self) -> Integers:
        """``[module]``, and one more: the number of crystals."""
        counts = np.array([t.crystal_count for t in self.types], np.int64)
        of_modules = counts[[m.type for m in self.modules]]
        first: Integers = np.concatenate([[0], np.cumsum(of_modules)]).astype(np.int64)
        return first

    @property
    def crystal_count(self) -> int:
        return int(self.first_crystal[-1])

    @cached_property
    def in_type(self) -> list[Address]:
        """``[type]``: the crystals of a module. The address of each has no module (0)."""
        out = []
        for t in self.types:
            shapes = [(len(layer.y), len(layer.z)) for layer in t.layers]
            grids = [np.indices(shape).reshape(2, -1) for shape in shapes]
            layer = np.repeat(np.arange(len(grids)), [grid.shape[1] for grid in grids])
            column, row = np.concatenate(grids, axis=1)
            out.append(Address(np.zeros_like(layer), layer, column, row))
        return out

    @cached_property
    def addresses(self) -> Address:
        """``[crystal]``."""
        module = np.repeat(np.arange(len(self.modules)), np.diff(self.first_crystal))
        parts = [self.in_type[m.type] for m in self.modules]
        return Address(module, *(np.concatenate([part[k] for part in parts]) for k in (1, 2, 3)))

    @cached_property
    def local_mm(self) -> list[Millimetres]:
        """``[type][crystal of a module]``: the middle of its front face, along the axes of a module."""
        out = []
        for t, at in zip(self.types, self.in_type):
            local = np.empty((t.crystal_count, 3))
            for k, layer in enumerate(t.layers):
                here = at.layer == k
                local[here, 0] = layer.front_mm
                local[here, 1] = layer.y.centres[at.column[here]]
                local[here, 2] = layer.z.centres[at.row[here]]
            out.append(local)
        return out

    def positions_mm(self) -> Millimetres:
        """``[crystal][x, y, z]``: the middle of its front face."""
        parts = [m.front_mm + self.local_mm[m.type] @ m.axes for m in self.modules]
        return np.concatenate(parts)

    def outward(self) -> Millimetres:
        """``[crystal][x, y, z]``: unit vector along it, away from the front."""
        return self.axes()[:, 0]

    def axes(self) -> Millimetres:
        """``[crystal][axis][x, y, z]``: unit vectors outward, along y and along z."""
        return np.repeat(np.array([m.axes for m in self.modules]), np.diff(self.first_crystal), axis=0)

    def sizes_mm(self) -> Millimetres:
        """``[crystal][length, size along y, size along z]``."""
        of_types = []
        for t, at in zip(self.types, self.in_type):
            sizes = np.empty((t.crystal_count, 3))
            for k, layer in enumerate(t.layers):
                here = at.layer == k
                sizes[here, 0] = layer.length_mm
                sizes[here, 1] = layer.y.sizes[at.column[here]]
                sizes[here, 2] = layer.z.sizes[at.row[here]]
            of_types.append(sizes)
        return np.concatenate([of_types[m.type] for m in self.modules])
