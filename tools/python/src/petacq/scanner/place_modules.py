"""Places the modules of a description in its long form (``modules``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from petacq.errors import ScannerError
from petacq.scanner.arrangement import Millimetres, Module, ModuleType
from petacq.scanner.keys import Part, finite

_PLACEMENTS = ("ring", "arc", "polygon", "box", "panel", "place")


def place_modules(items: Sequence[Part], types: Sequence[ModuleType]) -> list[Module]:
    names = [t.name for t in types]
    modules: list[Module] = []
    for item in items:
        name = item.text("type")
        if name not in names:
            raise ScannerError(f"{item.path}/type: expected the name of one of /module_types, found {name!r}")
        around = _around(item)
        along = item.part("along_z")
        repeats = along.count("count", 1)
        for k in range(repeats):
            z = along.number("middle_mm", 0.0) + (k - (repeats - 1) / 2) * along.number("pitch_mm", 0.0)
            modules += [
                replace(m, type=names.index(name), group=item.text("group", ""), front_mm=m.front_mm + (0, 0, z))
                for m in around
            ]
    return modules


def axes_of(outward: Millimetres, turn_deg: float) -> Millimetres:
    """Rows: outward, along y, along z. The axis of the scanner, turned into the plane of the front face, is along z;
    +y where the module faces along the axis."""
    outward = outward / np.linalg.norm(outward)
    up = np.array([0.0, 1.0, 0.0] if abs(outward[2]) > 1 - 1e-9 else [0.0, 0.0, 1.0])
    y = np.cross(up, outward)
    y /= np.linalg.norm(y)
    z = np.cross(outward, y)
    c, s = math.cos(math.radians(turn_deg)), math.sin(math.radians(turn_deg))
    return np.array([outward, c * y + s * z, c * z - s * y])


def facing_axis(angle_deg: float, radius: float, shift: float) -> Module:
    """A module that faces the axis at this angle, its front ``radius`` away, moved by ``shift`` counter-clockwise."""
    c, s = math.cos(math.radians(angle_deg)), math.sin(math.radians(angle_deg))
    axes = np.array([(c, s, 0), (-s, c, 0), (0, 0, 1)])
    return Module(0, np.array([radius * c - shift * s, radius * s + shift * c, 0]), axes)


def _side(angle_deg: float, radius: float, count: int, pitch: float, shift: float = 0.0) -> list[Module]:
    return [facing_axis(angle_deg, radius, shift + (i - (count - 1) / 2) * pitch) for i in range(count)]


def _around(item: Part) -> list[Module]:
    """The modules of an item that are around the axis, without their types."""
    used = [name for name in _PLACEMENTS if item.has(name)]
    if len(used) != 1:
        found = " and ".join(used) or "none"
        raise ScannerError(f"{item.path}: expected one of ring, arc, polygon, box, panel and place, found {found}")
    (name,) = used
    part = item.part(name)
    if name == "place":
        vectors = []
        for key in ("front_mm", "outward"):
            values = [finite(value, f"{part.path}/{key}") for value in part.items(key)]
            if len(values) != 3 or (key == "outward" and not any(values)):
                raise ScannerError(f"{part.path}/{key}: expected three numbers, not all 0, found {values}")
            vectors.append(np.array(values))
        return [Module(0, vectors[0], axes_of(vectors[1], part.number("turn_deg", 0.0)))]
    if name == "panel":
        angle, radius = part.number("angle_deg", 0.0), part.number("radius_mm")
        return _side(angle, radius, part.count("count"), part.number("pitch_mm"), part.number("shift_mm", 0.0))
    first = part.number("first_angle_deg", 0.0)
    if name in ("ring", "arc"):
        count = part.count("count")
        of = part.count("of", least=count) if name == "arc" else count
        modules = [facing_axis(first + 360 * k / of, part.number("radius_mm"), 0.0) for k in range(count)]
    else:
        per_side = part.count("per_side")
        sides = part.count("sides") if name == "polygon" else 4
        modules = []
        for k in range(sides):
            if name == "polygon":
                angle, radius = first + 360 * k / sides, part.number("radius_mm")
            else:
                angle, radius = 90.0 * k, part.number("x_mm" if k % 2 == 0 else "y_mm") / 2
            modules += _side(angle, radius, per_side, part.number("pitch_mm"))
        of = sides * per_side
    return [replace(m, around=(k, of)) for k, m in enumerate(modules)]
