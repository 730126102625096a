"""Which modules of a scanner in the long form can be in coincidence (``good_pairs`` of its description)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from petacq.scanner.arranged_scanner import ArrangedScanner
from petacq.scanner.arrangement import Integers
from petacq.scanner.keys import Part, list_of


def modules_pair(
    scanner: ArrangedScanner, a: Integers, b: Integers, min_module_difference: int = 0
) -> npt.NDArray[np.bool_]:
    """``[a][b]`` for modules of these numbers. Places of crystals along the axis and the field of view may refuse pairs of
    their crystals nevertheless. ``min_module_difference``: around the ring, as the configuration of a run has it."""
    rule = Part(scanner.description, "").part("good_pairs")
    modules = scanner.arrangement.modules
    good = np.ones((len(a), len(b)), bool)
    if between := [list_of(pair, f"{rule.path}/between") for pair in rule.items("between")]:
        names = sorted({m.group for m in modules})
        number = {name: k for k, name in enumerate(names)}
        named = np.zeros((len(names), len(names)), bool)
        for first, second in between:
            if first in number and second in number:
                named[number[first], number[second]] = named[number[second], number[first]] = True
        group = np.array([number[m.group] for m in modules])
        good &= named[group[a][:, None], group[b]]
    least_deg = rule.number("min_angle_deg", 0.0)
    if least_deg > 0:
        outward = np.array([m.axes[0] for m in modules])
        degrees = np.round(np.degrees(np.arctan2(outward[:, 1], outward[:, 0])), 6)
        straight = np.abs(degrees[a][:, None] - degrees[b]) % 360
        # What faces along the axis, to rounding, has no direction around it and meets no least angle.
        across = np.hypot(outward[:, 0], outward[:, 1]) >= 1e-6
        apart = np.where(across[a][:, None] & across[b], np.minimum(straight, 360 - straight), 0)
        good &= apart >= least_deg - 5e-7
    if min_module_difference:
        place = np.array([m.around[0] if m.around else 0 for m in modules])
        of = np.array([m.around[1] if m.around else 1 for m in modules])
        straight = np.abs(place[a][:, None] - place[b])
        good &= np.minimum(straight, of[a][:, None] - straight) >= min_module_difference
    return good
