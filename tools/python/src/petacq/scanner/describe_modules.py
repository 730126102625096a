"""Writes modules that were found as a description in the long form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from petacq.errors import ScannerError
from petacq.scanner.arranged_scanner import row_of
from petacq.scanner.arrangement import Integers, Millimetres
from petacq.scanner.find_modules import FoundLayer, FoundModule
from petacq.scanner.keys import Part

_MOST_MODULES = 65536
_MOST_TYPES = 256


@dataclass(frozen=True)
class Described:
    document: dict[str, Any]
    crystals: Integers  #: ``[crystal of the description]``: its number in the file


def describe(
    name: str, tick_ps: float, modules: Sequence[FoundModule], materials: Sequence[str], tolerance_mm: float
) -> Described:
    """Raises ScannerError."""
    if len(modules) > _MOST_MODULES:
        raise ScannerError(f"{len(modules)} modules were found: expected at most {_MOST_MODULES}; try a larger --gap-mm")
    groups = _by_type(modules, tolerance_mm)
    if len(groups) > _MOST_TYPES:
        raise ScannerError(f"{len(groups)} types of modules were found: expected at most {_MOST_TYPES}")
    items: list[dict[str, Any]] = []
    order: list[FoundModule] = []
    for number, group in enumerate(groups):
        for item, placed in _placed(group, tolerance_mm):
            items.append({"type": f"type {number}", **item})
            order += placed
    crystals = [layer.crystals.ravel() for module in order for layer in module.layers]
    most = max(sum(layer.crystals.size for layer in module.layers) for module in modules)
    if most > 1 << 16:
        raise ScannerError(f"a module of {most} crystals was found: expected at most {1 << 16}; try a smaller --gap-mm")
    document = {
        "name": name,
        "tick_ps": tick_ps,
        "position_size": math.isqrt(most - 1) + 1,
        "module_types": [
            {"name": f"type {k}", "layers": _layers(group, materials, tolerance_mm)} for k, group in enumerate(groups)
        ],
        "modules": items,
    }
    return Described(document, np.concatenate(crystals))


def plain(value: float, tolerance: float) -> float:
    """The number with the fewest decimals that is near enough: by an eighth of what tells two places apart."""
    for digits in range(9):
        if abs(round(value, digits) - value) <= tolerance / 8:
            return round(value, digits) + 0.0
    return round(value, 9) + 0.0


def _shape(module: FoundModule) -> Millimetres:
    """All numbers of its layers, from the middle of its front face."""
    depth, y, z = module.middle
    parts = []
    for of in module.layers:
        parts += [[of.depth - depth, of.length], of.y - y, of.z - z, of.y_sizes, of.z_sizes]
    return np.concatenate(parts)


def _by_type(modules: Sequence[FoundModule], tolerance: float) -> list[list[FoundModule]]:
    groups: dict[tuple[Any, ...], list[tuple[Millimetres, list[FoundModule]]]] = {}
    for module in modules:
        key = tuple((of.crystals.shape, of.material) for of in module.layers)
        shape = _shape(module)
        for known, members in groups.setdefault(key, []):
            if np.abs(known - shape).max() <= 2 * tolerance:
                members.append(module)
                break
        else:
            groups[key].append((shape, [module]))
    return [members for of_key in groups.values() for _, members in of_key]


def _row(centres: Millimetres, sizes: Millimetres, tolerance: float) -> dict[str, Any]:
    """With the fewest decimals that leave the crystals at their places."""
    begin, end = centres[0] - sizes[0] / 2, centres[-1] + sizes[-1] / 2
    middle = (begin + end) / 2
    shift = {} if abs(middle) <= tolerance / 4 else {"shift_mm": plain(float(middle), tolerance / 4)}
    equal = bool(np.ptp(sizes) <= tolerance)
    for digits in range(10):
        row = _equal_row(centres, sizes, tolerance, digits) if equal else _unequal_row(centres, sizes, digits)
        built = row_of(Part(row, ""))
        moved = np.abs(built.centres + middle - centres).max()
        if moved <= tolerance / 8 and np.abs(built.sizes - sizes).max() <= tolerance:
            break
    return {**row, **shift}


def _equal_row(centres: Millimetres, sizes: Millimetres, tolerance: float, digits: int) -> dict[str, Any]:
    """The pitch is that of most; the other steps have gaps."""
    steps = np.diff(centres)
    common = steps[steps <= steps.min() + tolerance] if len(steps) else sizes
    pitch = max(round(float(common.mean()), digits), 10.0**-digits)
    size = min(float(sizes.mean()), pitch) if len(steps) else pitch
    row: dict[str, Any] = {"count": len(centres), "pitch_mm": pitch}
    if size < pitch - tolerance:
        row["size_mm"] = min(plain(size, tolerance), pitch)
    gaps = [(k + 1, round(float(step) - pitch, digits)) for k, step in enumerate(steps) if step > steps.min() + tolerance]
    if gaps:
        row["gaps"] = [{"after": after, "mm": max(0.0, mm)} for after, mm in gaps]
    return row


def _unequal_row(centres: Millimetres, sizes: Millimetres, digits: int) -> dict[str, Any]:
    rounded = np.maximum(np.round(sizes, digits), 10.0**-digits)
    between = np.round(np.diff(centres) - (rounded[1:] + rounded[:-1]) / 2, digits)
    row: dict[str, Any] = {"sizes_mm": rounded.tolist()}
    gaps = [{"after": k + 1, "mm": float(gap)} for k, gap in enumerate(between) if gap > 0]
    if gaps:
        row["gaps"] = gaps
    return row


def _mean(group: Sequence[FoundModule]) -> list[FoundLayer]:
    """The layers of a type, from the middle of the front face: means of its modules."""
    layers = []
    for k, first in enumerate(group[0].layers):
        middles = np.array([module.middle for module in group])
        same = [module.layers[k] for module in group]
        layers.append(
            FoundLayer(
                crystals=first.crystals,
                depth=float(np.mean([of.depth for of in same] - middles[:, 0])),
                y=np.mean([of.y for of in same] - middles[:, 1:2], axis=0),
                z=np.mean([of.z for of in same] - middles[:, 2:3], axis=0),
                y_sizes=np.mean([of.y_sizes for of in same], axis=0),
                z_sizes=np.mean([of.z_sizes for of in same], axis=0),
                length=float(np.mean([of.length for of in same])),
                material=first.material,
            )
        )
    return layers


def _layers(group: Sequence[FoundModule], materials: Sequence[str], tolerance: float) -> list[dict[str, Any]]:
    layers = []
    end = 0.0
    for of in _mean(group):
        length = plain(of.length, tolerance)
        layer: dict[str, Any] = {
            "y": _row(of.y, of.y_sizes, tolerance),
            "z": _row(of.z, of.z_sizes, tolerance),
            "length_mm": length,
            "material": materials[of.material],
        }
        gap = plain(of.depth - end, tolerance / 4)
        if gap > tolerance / 4:
            layer["gap_mm"] = gap
        end += max(0.0, gap) + length
        layers.append(layer)
    return layers


# Places


@dataclass(frozen=True)
class _Place:
    """Of a module that faces the axis."""

    module: FoundModule
    angle_deg: float
    radius: float
    shift: float
    z: float


def _placed(group: Sequence[FoundModule], tolerance: float) -> list[tuple[dict[str, Any], list[FoundModule]]]:
    """Items of a description with the modules that each places, in the order in which it does."""
    facing: list[_Place] = []
    others: list[FoundModule] = []
    for module in group:
        depth, y, z = module.middle
        outward = module.axes[0]
        if abs(outward[2]) < 1e-6 and module.turn_deg == 0 and depth > 0:
            angle = math.degrees(math.atan2(outward[1], outward[0])) % 360
            facing.append(_Place(module, angle, float(depth), float(y), float(z)))
        else:
            others.append(module)
    items = []
    while facing:
        first = facing[0]
        near = [p for p in facing if abs(p.radius - first.radius) <= tolerance and abs(p.shift - first.shift) <= tolerance]
        found = _arc(near, tolerance) if abs(first.shift) <= tolerance else None
        if found is None:
            angle = first.angle_deg
            same = [p for p in facing if abs(p.radius - first.radius) <= tolerance and _apart(p.angle_deg, angle) < 1e-4]
            found = _panel(same, tolerance)
        items.append((found[0], [p.module for p in found[1]]))
        taken = {id(p) for p in found[1]}
        facing = [p for p in facing if id(p) not in taken]
    return items + [(_single(module, tolerance), [module]) for module in others]


def _apart(a: float, b: float) -> float:
    return abs((a - b + 180) % 360 - 180)


def _steps(values: Sequence[float], tolerance: float) -> tuple[float, float] | None:
    """Middle and pitch of values that are equally far apart."""
    ordered = np.sort(np.array(values))
    if len(ordered) == 1:
        return plain(float(ordered[0]), tolerance / 2), 0.0
    pitch = float(ordered[-1] - ordered[0]) / (len(ordered) - 1)
    if pitch <= tolerance or np.abs(np.diff(ordered) - pitch).max() > 2 * tolerance:
        return None
    middle = float(ordered[0] + ordered[-1]) / 2
    return plain(middle, tolerance / 2), plain(pitch, tolerance / len(ordered))


def _along(item: dict[str, Any], count: int, middle: float, pitch: float) -> dict[str, Any]:
    if count > 1:
        item["along_z"] = {"count": count, "pitch_mm": pitch, "middle_mm": middle}
    elif middle:
        item["along_z"] = {"middle_mm": middle}
    return item


def _columns(places: Sequence[_Place], of: str, tolerance: float) -> list[list[_Place]]:
    """Places with equal angles (or shifts), from the lowest z in each."""
    ordered = sorted(places, key=lambda p: (float(getattr(p, of)), p.z))
    columns: list[list[_Place]] = []
    for place in ordered:
        if columns and abs(getattr(place, of) - getattr(columns[-1][0], of)) <= tolerance:
            columns[-1].append(place)
        else:
            columns.append([place])
    return [sorted(column, key=lambda p: p.z) for column in columns]


def _regular(columns: Sequence[Sequence[_Place]], tolerance: float) -> tuple[float, float] | None:
    """Middle and pitch along z, if they are those of all columns."""
    z = [[p.z for p in column] for column in columns]
    if len({len(column) for column in z}) != 1 or np.ptp(np.array(z), axis=0).max() > 2 * tolerance:
        return None
    return _steps(np.array(z).mean(0).tolist(), tolerance)


def _arc(places: Sequence[_Place], tolerance: float) -> tuple[dict[str, Any], list[_Place]] | None:
    radius = float(np.mean([p.radius for p in places]))
    columns = _columns(places, "angle_deg", max(1e-4, math.degrees(tolerance / radius)))
    along = _regular(columns, tolerance)
    if len(columns) < 2 or along is None:
        return None
    angles = np.array([np.mean([p.angle_deg for p in column]) for column in columns])
    gaps = np.diff(np.append(angles, angles[0] + 360))
    of = round(360 / float(gaps.min()))
    fine = max(2e-4, 2 * math.degrees(tolerance / radius))
    start = 0 if len(columns) == of else (int(gaps.argmax()) + 1) % len(columns)
    columns = [*columns[start:], *columns[:start]]
    angles = np.roll(angles, -start)
    expected = angles[0] + np.arange(len(angles)) * 360 / of
    if len(columns) > of or max(map(_apart, angles.tolist(), expected.tolist())) > fine:
        return None
    offset = (angles - expected + 180) % 360 - 180
    arc = {"count": len(columns), "radius_mm": plain(radius, tolerance / 2)}
    first = plain(float(angles[0] + offset.mean()), fine / 8)
    if abs(first) > 0:
        arc["first_angle_deg"] = first
    item: dict[str, Any] = {"ring": arc} if len(columns) == of else {"arc": {**arc, "of": of}}
    order = [column[k] for k in range(len(columns[0])) for column in columns]
    return _along(item, len(columns[0]), *along), order


def _panel(places: Sequence[_Place], tolerance: float) -> tuple[dict[str, Any], list[_Place]]:
    """Modules of one direction side by side, or else the first of them."""
    columns = _columns(places, "shift", tolerance)
    along = _regular(columns, tolerance)
    shifts = [float(np.mean([p.shift for p in column])) for column in columns]
    across = _steps(shifts, tolerance)
    if along is None or across is None:
        columns = [[places[0]]]
        along = plain(places[0].z, tolerance / 2), 0.0
        across = plain(places[0].shift, tolerance / 2), 0.0
    used = [p for column in columns for p in column]
    radius = float(np.mean([p.radius for p in used]))
    panel = {
        "radius_mm": plain(radius, tolerance / 2),
        "angle_deg": plain(float(np.mean([p.angle_deg for p in used])), math.degrees(tolerance / radius) / 2),
        "count": len(columns),
        "pitch_mm": across[1] or 1.0,
    }
    if across[0]:
        panel["shift_mm"] = across[0]
    order = [column[k] for k in range(len(columns[0])) for column in columns]
    return _along({"panel": panel}, len(columns[0]), *along), order


def _single(module: FoundModule, tolerance: float) -> dict[str, Any]:
    front = module.middle @ module.axes
    place: dict[str, Any] = {
        "front_mm": [plain(float(x), tolerance / 4) for x in front],
        "outward": [round(float(x), 12) + 0.0 for x in module.axes[0]],
    }
    if module.turn_deg:
        place["turn_deg"] = plain(module.turn_deg, 1e-6)
    return {"place": place}
