"""Planes through an image."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
_NAMES = "xyz"


@dataclass(frozen=True, eq=False)
class Cut:
    """One plane of an image."""

    #: ``[up][right]``: the first row is the lowest.
    values: Floats
    #: Names of the axes to the right, up, and across the plane.
    right: str
    up: str
    across: str
    #: Where the plane is.
    at_mm: float
    #: Edges of the plane: left, right, bottom, top.
    extent_mm: tuple[float, float, float, float]


def brightest_place(values: Floats) -> tuple[int, int, int]:
    """The index of the largest of the 3 x 3 x 3 voxels with the largest mean: a voxel of noise alone is not it."""
    means, sizes = values, [min(count, 3) for count in values.shape]
    for axis, size in enumerate(sizes):
        count = means.shape[axis] - size + 1
        along = np.moveaxis(means, axis, 0)
        summed = along[:count].copy()
        for i in range(1, size):
            summed += along[i : i + count]
        means = np.moveaxis(summed, 0, axis)
    corner = np.unravel_index(means.argmax(), means.shape)
    box = values[tuple(slice(int(low), int(low) + size) for low, size in zip(corner, sizes))]
    z, y, x = (int(low + inside) for low, inside in zip(corner, np.unravel_index(box.argmax(), box.shape)))
    return z, y, x


def cuts_at(
    values: Floats, index: tuple[int, int, int], axes_mm: tuple[Floats, Floats, Floats], voxel_mm: tuple[float, float, float]
) -> tuple[Cut, Cut, Cut]:
    """The planes across z, y and x through the voxel ``index`` (x, y, z) of ``values`` (``[z][y][x]``)."""
    x, y, z = index
    planes = {"z": ("x", "y", values[z]), "y": ("x", "z", values[:, y]), "x": ("y", "z", values[:, :, x])}

    def edges(name: str) -> tuple[float, float]:
        axis = _NAMES.index(name)
        half = voxel_mm[axis] / 2
        return float(axes_mm[axis][0]) - half, float(axes_mm[axis][-1]) + half

    def cut(across: str) -> Cut:
        right, up, plane = planes[across]
        axis = _NAMES.index(across)
        return Cut(plane, right, up, across, float(axes_mm[axis][index[axis]]), (*edges(right), *edges(up)))

    return cut("z"), cut("y"), cut("x")
