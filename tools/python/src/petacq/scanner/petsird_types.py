"""The types of modules of a PETSIRD file: all crystals of one are alike. A module with crystals of several kinds (layers of
different lengths, say) is one module of each of several types, at the same place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from petacq.scanner.arranged_scanner import ArrangedScanner
from petacq.scanner.arrangement import Integers, Millimetres, ModuleType
from petacq.scanner.scanner import Scanner


@dataclass(frozen=True)
class PetsirdType:
    box_mm: tuple[float, float, float]  #: a crystal: its length, its sizes along y and z
    material: str | None  #: None: not known
    corner_mm: Millimetres  #: ``[element][x, y, z]``: in a module, which faces along x; of lowest x, y and z
    matrices: Millimetres  #: ``[module][3][4]``: rotation and translation
    crystals: Integers  #: ``[module][element]``
    time_resolution_ps: float | None = None  #: FWHM of one single
    energy_resolution: float | None = None  #: FWHM at 511 keV, a fraction

    @property
    def elements(self) -> int:
        return len(self.crystals[0])

    @property
    def modules(self) -> int:
        return len(self.crystals)


def types_of(scanner: Scanner) -> list[PetsirdType]:
    return _of_arrangement(scanner) if isinstance(scanner, ArrangedScanner) else [_of_ring(scanner)]


def turned_about_z(angle: float) -> Millimetres:
    c, s = math.cos(angle), math.sin(angle)
    return np.array(((c, -s, 0), (s, c, 0), (0, 0, 1)))


def _of_ring(s: Scanner) -> PetsirdType:
    """Modules go along the axis first, then around the ring; so do the elements in a module. STIR expects this."""
    rows = s.crystals_per_module_z
    crystal = np.arange(s.crystal_count)
    ring, y = s.ring(crystal), s.in_ring(crystal) % s.crystals_per_module_y
    module = s.module(crystal) * s.modules_z + ring // rows
    crystals = np.empty((s.bdm_count, s.crystals_per_module_y * rows), np.int64)
    crystals[module, y * rows + ring % rows] = crystal

    in_module_z = s.axial_mm[:rows]
    middle_z = (in_module_z[0] + in_module_z[-1]) / 2
    corners = np.empty((s.crystals_per_module_y, rows, 3))
    corners[:, :, 0] = s.ring_radius_mm
    corners[:, :, 1] = (s.tangential_mm[: s.crystals_per_module_y] - s.crystal_pitch_y_mm / 2)[:, None]
    corners[:, :, 2] = in_module_z - middle_z - s.crystal_pitch_z_mm / 2
    matrices = np.zeros((s.modules_in_ring, s.modules_z, 3, 4))
    for k in range(s.modules_in_ring):
        matrices[k, :, :, :3] = turned_about_z(2 * math.pi * k / s.modules_in_ring)
    matrices[:, :, 2, 3] = s.axial_mm[::rows] - in_module_z[0] + middle_z
    box = (s.crystal_length_mm, s.crystal_pitch_y_mm, s.crystal_pitch_z_mm)
    return PetsirdType(box, None, corners.reshape(-1, 3), matrices.reshape(-1, 3, 4), crystals)


def _kinds_in(of: ModuleType, sizes: Millimetres, layer: Integers) -> list[Integers]:
    """The crystals of a module in groups of equal size and material, in the order of their first ones."""
    kinds: dict[tuple[object, ...], list[int]] = {}
    for crystal, size in enumerate(np.round(sizes, 9).tolist()):
        kinds.setdefault((*size, of.layers[int(layer[crystal])].material), []).append(crystal)
    return [np.array(crystals, np.int64) for crystals in kinds.values()]


def _of_arrangement(scanner: ArrangedScanner) -> list[PetsirdType]:
    arrangement = scanner.arrangement
    sizes_mm = arrangement.sizes_mm()
    types = []
    for number, of in enumerate(arrangement.types):
        modules = [k for k, m in enumerate(arrangement.modules) if m.type == number]
        if not modules:
            continue
        matrices = np.empty((len(modules), 3, 4))
        for place, module in zip(matrices, (arrangement.modules[k] for k in modules)):
            place[:, :3], place[:, 3] = module.axes.T, module.front_mm
        first = arrangement.first_crystal[modules]
        sizes = sizes_mm[first[0] : first[0] + of.crystal_count]
        local, layer = arrangement.local_mm[number], arrangement.in_type[number].layer
        for kind in _kinds_in(of, sizes, layer):
            box = sizes[kind[0]]
            corners = local[kind] - (0.0, box[1] / 2, box[2] / 2)
            material = of.layers[int(layer[kind[0]])].material
            resolutions = of.time_resolution_ps, of.energy_resolution
            length, y, z = box.tolist()
            types.append(PetsirdType((length, y, z), material, corners, matrices, first[:, None] + kind, *resolutions))
    return types


def elements_of(types: Sequence[PetsirdType]) -> npt.NDArray[np.int64]:
    """``[crystal]``: its number among the elements of all types, type by type and module by module."""
    crystals = np.concatenate([of.crystals.ravel() for of in types])
    element = np.empty(len(crystals), np.int64)
    element[crystals] = np.arange(len(crystals))
    return element
