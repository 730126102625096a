"""Finds modules whose layers overlap; petcal and the daemon refuse a description of such modules."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from petacq.scanner.arrangement import Integers, Millimetres

#: Modules that reach less into each other only touch: rounded places do. As in config/scanner/place_modules.cpp.
TOUCHING_MM = 1e-3


@dataclass(frozen=True)
class Boxes:
    """Of layers: a box around a whole module holds a part of its neighbours, where its outer layers are wider."""

    module: Integers  #: ``[box]``: its number
    middle: Millimetres  #: ``[box][x, y, z]``
    axes: Millimetres  #: ``[box]``: rows are the directions of its edges
    half: Millimetres  #: ``[box][edge]``: half of its length


def overlaps(boxes: Boxes) -> Integers:
    """``[pair][2]``: boxes that overlap, of different modules."""
    reach = np.einsum("be,bex->bx", boxes.half, np.abs(boxes.axes)) - TOUCHING_MM / 2
    low, high = boxes.middle - reach, boxes.middle + reach
    swept = int(np.ptp(boxes.middle, axis=0).argmax())
    order = np.argsort(low[:, swept], kind="stable")
    last = np.searchsorted(low[order, swept], high[order, swept])
    pairs = [np.empty((0, 2), np.int64)]
    for k, box in enumerate(order.tolist()):
        others = order[k + 1 : last[k]]
        others = others[boxes.module[others] != boxes.module[box]]
        others = others[((low[others] < high[box]) & (low[box] < high[others])).all(1)]
        others = others[_no_plane_parts(boxes, box, others)]
        pairs.append(np.column_stack([np.full(len(others), box), others]))
    return np.concatenate(pairs)


def _no_plane_parts(boxes: Boxes, box: int, others: Integers) -> npt.NDArray[np.bool_]:
    """Of the planes at right angles to edges and to pairs of edges."""
    own = np.broadcast_to(boxes.axes[box], (len(others), 3, 3))
    axes = boxes.axes[others]
    crossed = np.cross(own[:, :, None], axes[:, None, :]).reshape(-1, 9, 3)
    planes = np.concatenate([own, axes, crossed], axis=1)
    length = np.linalg.norm(planes, axis=2)
    reach = np.abs(planes @ boxes.axes[box].T) @ boxes.half[box]
    reach += np.einsum("ope,oe->op", np.abs(planes @ axes.transpose(0, 2, 1)), boxes.half[others])
    apart = np.abs(np.einsum("opx,ox->op", planes, boxes.middle[others] - boxes.middle[box]))
    return np.asarray(~((length > 1e-9) & (apart > reach - TOUCHING_MM * length)).any(1))
