"""Finds by how much a grid of crystals is turned about its direction, where a file has only their places."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from petacq.scanner.arrangement import Integers, Millimetres

#: Crystals whose neighbours are looked for, of each plane.
_MOST_ASKED = 64


def turn_of(planes: Sequence[tuple[Millimetres, Millimetres]], gap_mm: float, tolerance_mm: float) -> float:
    """Degrees, as ``turn_deg`` of a description. ``planes``: y and z, and the sizes along these, of crystals of one depth each;
    y and z are along the directions of a module that is not turned. 0 if crystals further apart than the gap are all that there
    are, or if neighbours do not tell one angle."""
    steps = np.concatenate([_to_neighbours(places, sizes, gap_mm) for places, sizes in planes])
    if not len(steps):
        return 0.0
    angles = np.arctan2(steps[:, 1], steps[:, 0])
    unsure = 4 * tolerance_mm / np.hypot(*steps[:, :2].T)
    # Neighbours in a grid are along its y or its z.
    turn = float(angles[unsure.argmin()]) % (np.pi / 2)
    if (np.abs(_folded(angles - turn)) > unsure + unsure.min()).any() or (np.abs(_folded(angles)) <= unsure).all():
        return 0.0
    turn = float(_folded(np.array(turn)))
    turn += _correction([places @ _rotation(turn) for places, _ in planes], gap_mm)
    # Upright sizes leave room for the neighbours; of crystals turned by another 90 degrees they would be the other ones.
    crossing = [np.count_nonzero(_too_near(steps, turn + quarter, tolerance_mm)) for quarter in (0, np.pi / 2)]
    return float(np.degrees(turn)) + (90.0 if crossing[1] < crossing[0] else 0.0)


def _to_neighbours(places: Millimetres, sizes: Millimetres, gap_mm: float) -> Millimetres:
    """Of crystals with a neighbour: the way to the nearest one along y and z, and the mean sizes of both."""
    asked = np.unique(np.linspace(0, len(places) - 1, _MOST_ASKED).astype(int))
    found = []
    for k in asked if len(places) > 1 else []:
        apart = np.hypot(*(places - places[k]).T)
        apart[k] = np.inf
        nearest = int(apart.argmin())
        both = (sizes[k] + sizes[nearest]) / 2
        if apart[nearest] <= both.max() + gap_mm:
            found.append([*(places[nearest] - places[k]), *both])
    return np.array(found).reshape(-1, 4)


def _folded(angle: Millimetres) -> Millimetres:
    """Modulo a right angle, between plus and minus half of one."""
    return np.asarray((angle + np.pi / 4) % (np.pi / 2) - np.pi / 4)


def _rotation(turn: float) -> Millimetres:
    """Of rows of places to the directions of a module that is turned."""
    c, s = np.cos(turn), np.sin(turn)
    return np.array([[c, -s], [s, c]])


def _correction(planes: Sequence[Millimetres], gap_mm: float) -> float:
    """What is left to turn by, from all rows and columns: least squares."""
    product, square = 0.0, 0.0
    for places in planes:
        for along, across, sign in ((0, 1, 1), (1, 0, -1)):
            order = np.argsort(places[:, across], kind="stable")
            cuts = np.flatnonzero(np.diff(places[order, across]) > gap_mm / 4) + 1
            for row in np.split(order, cuts):
                line = places[row] - places[row].mean(0)
                product += sign * float(line[:, along] @ line[:, across])
                square += float(line[:, along] @ line[:, along])
    return product / square if square else 0.0


def _too_near(steps: Millimetres, turn: float, tolerance_mm: float) -> npt.NDArray[np.bool_]:
    ways = np.abs(steps[:, :2] @ _rotation(turn))
    return np.asarray((ways < steps[:, 2:] - 2 * tolerance_mm).all(1))
