"""Reads where crystals are from the header of a PETSIRD file."""

from __future__ import annotations

import os

import numpy as np

from petacq.errors import ScannerError
from petacq.optional import petsird_package
from petacq.scanner.arrangement import Millimetres
from petacq.scanner.crystal_files import TOLERANCE_F32
from petacq.scanner.find_modules import Crystals
from petacq.scanner.place_modules import axes_of


def read_petsird(path: str | os.PathLike[str]) -> tuple[Crystals, list[str], str]:
    """The crystals, the names of their materials, and that of the scanner. Modules at the same place are one. A module faces
    along the edge of its crystals that points away from the axis most. Crystals are numbered as the elements of the file, type
    by type and module by module.

    Raises ScannerError, PetacqError, OSError."""
    petsird = petsird_package()
    with open(path, "rb") as file:
        try:
            # Not as a context: that demands all events to be read, too.
            information = petsird.BinaryPETSIRDReader(file).read_header().scanner
        except Exception as error:  # the package has no errors of its own
            raise ScannerError(f"{path}: expected a PETSIRD file of the version of the package: {error}") from error
    names = {material.id: str(material.name) for material in information.bulk_materials}
    materials = sorted({*names.values(), "not known"})
    parts: list[tuple[Millimetres, ...]] = []
    for of in information.scanner_geometry.replicated_modules:
        elements = of.object.detecting_elements
        material = materials.index(names.get(elements.object.material_id, "not known"))
        corners = np.array([corner.c for corner in elements.object.shape.corners], float)
        centre, edges = _box(corners, str(path))
        matrices = [np.array([t.matrix for t in parts.transforms], float).reshape(-1, 3, 4) for parts in (of, elements)]
        if not (len(matrices[0]) and len(matrices[1])):
            raise ScannerError(f"{path}: expected modules with crystals, found a type without any")
        for module in matrices[0]:
            parts.append(_module(module, matrices[1], centre, edges, material))
    front, outward, sizes, turn, material_of, at = (np.concatenate(columns) for columns in zip(*parts))
    if not all(np.isfinite(values).all() for values in (front, outward, sizes)):
        raise ScannerError(f"{path}: expected finite places of crystals")
    tolerance = max(float(np.abs(front).max()) * TOLERANCE_F32, 1e-6)
    _, module = np.unique(np.round(at / (8 * tolerance)) + 0.0, axis=0, return_inverse=True)
    crystals = Crystals(front, outward, sizes, material_of.astype(np.int64), tolerance, turn, module.ravel())
    return crystals, materials, str(information.model_name)


def _box(corners: Millimetres, path: str) -> tuple[Millimetres, Millimetres]:
    """The middle of a box, and its three edges as rows."""
    if corners.shape == (8, 3) and np.isfinite(corners).all():
        from_first = corners[1:] - corners[0]
        for a in range(7):
            for b in range(a + 1, 7):
                for c in range(b + 1, 7):
                    edges = from_first[[a, b, c]]
                    sizes = np.linalg.norm(edges, axis=1)
                    at_angles = np.abs(edges @ edges.T - np.diag(sizes**2)).max() <= 1e-4 * sizes.max() ** 2
                    if sizes.min() > 0 and at_angles:
                        return corners.mean(0), edges
    raise ScannerError(f"{path}: expected crystals that are boxes with 8 corners")


def _module(
    matrix: Millimetres, elements: Millimetres, centre: Millimetres, edges: Millimetres, material: int
) -> tuple[Millimetres, ...]:
    """Of each element: front, outward, sizes, turn, material, place of its module."""
    rotation = matrix[:, :3] @ elements[:, :, :3]
    in_module = elements[:, :, :3] @ centre + elements[:, :, 3]
    middle = in_module @ matrix[:, :3].T + matrix[:, 3]
    lengths = np.linalg.norm(edges, axis=1)
    directions = np.einsum("kij,ej->kei", rotation, edges / lengths[:, None])  # [element][edge]
    away = middle.mean(0) * (1, 1, 0)
    if not away.any():
        away = middle.mean(0)
    along = directions @ away
    depth = int(np.abs(along).sum(0).argmax())
    rest = [edge for edge in range(3) if edge != depth]
    up = max(rest, key=lambda edge: float(np.abs(directions[:, edge, 2]).sum()))
    outward = directions[:, depth] * np.sign(along[:, depth : depth + 1])
    z = directions[:, up] * np.where(directions[:, up, 2:] < 0, -1.0, 1.0)
    across = next(edge for edge in rest if edge != up)
    front = middle - outward * lengths[depth] / 2
    turns = np.array([_turn(o, v) for o, v in zip(outward, z)]) if len({*map(tuple, outward.tolist())}) > 1 else (
        np.full(len(outward), _turn(outward[0], z[0]))
    )
    sizes = np.tile(lengths[[depth, across, up]], (len(front), 1))
    place = np.tile(np.concatenate([matrix[:, 3], 100 * matrix[:, :3].ravel()]), (len(front), 1))
    return front, outward, sizes, turns, np.full(len(front), material), place


def _turn(outward: Millimetres, z: Millimetres) -> float:
    """``turn_deg`` of a module with these directions; 0 if it is next to nothing."""
    axes = axes_of(outward, 0.0)
    turn = float(np.degrees(np.arctan2(-z @ axes[1], z @ axes[2])))
    return 0.0 if abs(turn) < 1e-4 else turn
