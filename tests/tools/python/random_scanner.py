"""Random scanners in the long form: every kind of item, several layers and materials, unequal crystals, any rule of good pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

MATERIALS = ("BGO", "BaF2", "GAGG", "GSO", "LSO", "LYSO", "LaBr3", "LuAP", "NaI")


def _row(rng: np.random.Generator) -> dict[str, Any]:
    count = int(rng.integers(1, 5))
    if rng.random() < 0.6:
        row: dict[str, Any] = {"count": count, "pitch_mm": 2 + rng.random()}
        if rng.random() < 0.5:
            row["size_mm"] = 1.8
    else:
        row = {"sizes_mm": (1 + rng.random(count)).tolist()}
    if count > 1 and rng.random() < 0.5:
        row["gaps"] = [{"after": 1, "mm": rng.random()}]
    if rng.random() < 0.2:
        row["shift_mm"] = 0.2 * rng.random()
    return row


def _type(name: str, rng: np.random.Generator) -> dict[str, Any]:
    layers = []
    for _ in range(int(rng.integers(1, 4))):
        layer = {"y": _row(rng), "z": _row(rng), "length_mm": 2 + 5 * rng.random(), "material": str(rng.choice(MATERIALS))}
        if rng.random() < 0.2:
            layer["attenuation_per_cm"] = 0.3 + rng.random()
        if rng.random() < 0.3:
            layer["gap_mm"] = rng.random()
        layers.append(layer)
    return {"name": name, "layers": layers}


def _item(index: int, rng: np.random.Generator) -> dict[str, Any]:
    radius, pitch = 30 + 45 * index + 5 * rng.random(), 14 + rng.random()  # each further out than the one before
    count = int(rng.integers(1, 3))
    kinds: dict[str, dict[str, Any]] = {
        "ring": {"count": int(rng.integers(2, 7)), "radius_mm": radius, "first_angle_deg": 90 * rng.random()},
        "arc": {"count": int(rng.integers(1, 4)), "of": int(rng.integers(5, 9)), "radius_mm": radius},
        "polygon": {"sides": int(rng.integers(3, 6)), "per_side": count, "pitch_mm": pitch, "radius_mm": radius},
        "box": {"x_mm": 2 * radius, "y_mm": 2 * radius, "per_side": count, "pitch_mm": pitch},
        "panel": {"radius_mm": radius, "angle_deg": 360 * rng.random(), "count": count, "pitch_mm": pitch},
        "place": {
            "front_mm": [radius, 5 * rng.random(), 20 * rng.random() - 10],
            "outward": [1 + rng.random(), rng.random(), rng.random() - 0.5],
            "turn_deg": 360 * rng.random(),
        },
    }
    kind = str(rng.choice(list(kinds)))
    item: dict[str, Any] = {"type": str(rng.choice(["a", "b"])), "group": str(rng.choice(["", "in", "out"])), kind: kinds[kind]}
    if rng.random() < 0.5:
        item["along_z"] = {"count": 2, "pitch_mm": pitch, "middle_mm": rng.random()}
    return item


def random_description(rng: np.random.Generator) -> dict[str, Any]:
    """The programs may refuse it: its modules may overlap."""
    items = [_item(index, rng) for index in range(int(rng.integers(1, 4)))]
    rules: dict[str, Any] = {}
    if rng.random() < 0.4:
        groups = [item["group"] for item in items]
        pairs = {tuple(sorted([a, b])) for a in groups for b in groups if rng.random() < 0.7} or {(groups[0], groups[0])}
        rules["between"] = [list(pair) for pair in sorted(pairs)]
    if rng.random() < 0.4:
        rules["min_angle_deg"] = 120 * rng.random()
    if rng.random() < 0.3:
        rules["max_z_difference_mm"] = 20 * rng.random()
    return {
        "name": "random",
        "tick_ps": 10,
        "position_size": 32,
        "module_types": [kind for kind in (_type("a", rng), _type("b", rng)) if kind["name"] in {item["type"] for item in items}],
        "modules": items,
        "good_pairs": rules,
        "channel_map": {"units_per_bdm": int(rng.integers(1, 6))},
    }
