"""The weights of pairs of crystals: what images and exports of petlm take the chance of a pair to be, without a normalisation."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from petacq.scanner import Scanner
from petacq.scanner.arranged_scanner import ArrangedScanner
from petacq.scanner.arrangement import Integers, Millimetres
from petacq.scanner.crystal_materials import attenuation_per_mm

_LEAST_COSINE = 0.1  # lines along a face meet it
_LEAST_COSINES = 1e-6  # crystals side by side in one module do not see each other
_TOUCHING_MM = 0.01  # modules that stand side by side are not in each other's way


class PairWeights:
    """Takes arrays of crystals, and returns mm^2: for the integral of positrons per mm^3 over mm, the pairs to be expected.

    Of a ring ``face^2 cos cos / (2 pi distance^2)`` of the front faces. Of the long form the same with the areas of both crystals,
    between the points at which photons interact, times what the crystals absorb, and layers before them and modules on the way let
    pass (docs/explanation/image.md of petacqd).
    """

    def __init__(self, scanner: Scanner, depth_mm: float | None = None) -> None:
        """``depth_mm``: of the interaction, in the long form; None: as the crystals absorb photons. Raises ScannerError for
        unknown materials."""
        self._front, self._outward = scanner.positions_mm(), scanner.outward()
        sizes = scanner.sizes_mm()
        self._areas = sizes[:, 1] * sizes[:, 2] / math.sqrt(2 * math.pi)
        self._long_form = _LongForm(scanner, depth_mm) if isinstance(scanner, ArrangedScanner) else None

    def of(self, a: npt.ArrayLike, b: npt.ArrayLike) -> Millimetres:
        first, second = np.broadcast_arrays(np.asarray(a, np.int64), np.asarray(b, np.int64))
        shape = first.shape
        first, second = np.minimum(first, second).ravel(), np.maximum(first, second).ravel()
        weight = self._areas[first] * self._areas[second]
        from_, to = self._front[first], self._front[second]
        if self._long_form is not None:
            line = to - from_
            apart = np.maximum(np.linalg.norm(line, axis=1), 1e-6)
            cosines = [(side * line * self._outward[of]).sum(1) / apart for of, side in ((first, -1), (second, 1))]
            weight *= self._long_form.passed_and_absorbed(first, second, np.abs(cosines))
            depths = [self._long_form.depth(of, cosine, apart) for of, cosine in zip((first, second), cosines)]
            from_ = from_ + depths[0][:, None] * self._outward[first]
            to = to + depths[1][:, None] * self._outward[second]
        line = to - from_
        squares = np.maximum((line**2).sum(1), 1e-12)
        both = -(line * self._outward[first]).sum(1) * (line * self._outward[second]).sum(1) / squares
        return np.asarray(weight * np.maximum(both, _LEAST_COSINES) / squares).reshape(shape)


class _LongForm:
    """Where lines end, and which share of the photons along them is absorbed there."""

    def __init__(self, scanner: ArrangedScanner, depth_mm: float | None) -> None:
        arrangement = scanner.arrangement
        self._arrangement, self._depth_mm = arrangement, depth_mm
        self._address, self._sizes = arrangement.addresses, arrangement.sizes_mm()
        self._types = np.array([m.type for m in arrangement.modules])
        self._fronts = np.array([m.front_mm for m in arrangement.modules])
        self._axes = np.array([m.axes for m in arrangement.modules])
        self._local = np.concatenate([arrangement.local_mm[m.type] for m in arrangement.modules])
        self._per_mm = [np.array([attenuation_per_mm(layer) for layer in of.layers]) for of in arrangement.types]
        # [type][layer][end][axis]: the box of a layer.
        self._boxes = [
            np.array(
                [
                    [
                        [layer.front_mm, *(row.centres[0] - row.sizes[0] / 2 for row in (layer.y, layer.z))],
                        [
                            layer.front_mm + layer.length_mm,
                            *(row.centres[-1] + row.sizes[-1] / 2 for row in (layer.y, layer.z)),
                        ],
                    ]
                    for layer in of.layers
                ]
            )
            for of in arrangement.types
        ]
        per_mm = np.concatenate([self._per_mm[t][arrangement.in_type[t].layer] for t in self._types])
        self._attenuation = np.asarray(per_mm, float)
        self._in_the_way = self._find_in_the_way()

    def depth(self, crystal: Integers, cosine: Millimetres, apart: Millimetres) -> Millimetres:
        """The mean depth of a density exp(-t (mu + 4 / distance) / cosine) over the length of the crystal: photons spread from the
        middle of the line."""
        if self._depth_mm is not None:
            return np.full(len(crystal), self._depth_mm)
        length = self._sizes[crystal, 0]
        per_mm = (self._attenuation[crystal] + 4 / (apart + length)) / np.maximum(cosine, _LEAST_COSINE)
        y = length * per_mm / 2
        return np.asarray(length / 2 * (1 + 1 / y - 1 / np.tanh(y)))

    def passed_and_absorbed(self, a: Integers, b: Integers, cosines: Millimetres) -> Millimetres:
        if self._depth_mm == 0:  # the front faces absorb all
            return np.ones(len(a))
        out = np.ones(len(a))
        for crystal, cosine in zip((a, b), cosines):
            thickness = self._attenuation[crystal] * self._sizes[crystal, 0] / np.maximum(cosine, _LEAST_COSINE)
            out *= -np.expm1(-thickness)
        passed = np.zeros(len(a))
        for y, z in ((-1, -1), (1, -1), (-1, 1), (1, 1)):  # Gauss nodes of both faces
            from_, to = (self._node(of, y, z) for of in (a, b))
            thickness = self._before(a, from_, to) + self._before(b, from_, to) + self._on_the_way(a, b, from_, to)
            passed += np.exp(-thickness)
        return np.asarray(out * passed / 4)

    def _node(self, crystal: Integers, y: int, z: int) -> Millimetres:
        local = self._local[crystal] + self._sizes[crystal] * (0, y / math.sqrt(12), z / math.sqrt(12))
        module = self._address.module[crystal]
        return np.asarray(self._fronts[module] + np.einsum("ni,nij->nj", local, self._axes[module]))

    def _before(self, crystal: Integers, from_: Millimetres, to: Millimetres) -> Millimetres:
        """mu times length in the layers in front of the crystals."""
        out = np.zeros(len(crystal))
        module, layer = self._address.module[crystal], self._address.layer[crystal]
        for behind in np.unique(np.stack([module, layer])[:, layer > 0], axis=1).T.tolist():
            at = (module == behind[0]) & (layer == behind[1])
            out[at] = self._in_module(behind[0], from_[at], to[at], behind[1])
        return out

    def _on_the_way(self, a: Integers, b: Integers, from_: Millimetres, to: Millimetres) -> Millimetres:
        """mu times length in other modules."""
        out = np.zeros(len(a))
        along = to - from_
        module_a, module_b = self._address.module[a], self._address.module[b]
        for module, middle, radius in self._in_the_way:
            away = middle - from_
            nearest = np.clip((away * along).sum(1) / (along**2).sum(1), 0, 1)
            near = ((away - nearest[:, None] * along) ** 2).sum(1) <= radius**2
            near &= (module_a != module) & (module_b != module)
            if near.any():
                out[near] += self._in_module(module, from_[near], to[near])
        return out

    def _in_module(self, module: int, from_: Millimetres, to: Millimetres, layers: int | None = None) -> Millimetres:
        """mu times length in the first layers of a module; None: in all."""
        begin, end = ((points - self._fronts[module]) @ self._axes[module].T for points in (from_, to))
        of = self._types[module]
        out = np.zeros(len(from_))
        for box, per_mm in list(zip(self._boxes[of], self._per_mm[of]))[:layers]:
            out += per_mm * _length_in(box, begin, end)
        return out

    def _find_in_the_way(self) -> list[tuple[int, Millimetres, float]]:
        """Modules behind whose front plane the front face of another has a point: number, middle and radius of a sphere around it."""
        corners = []
        for type_, front, axes in zip(self._types, self._fronts, self._axes):
            box = self._boxes[type_]
            local = [(0, y, z) for layer in box for y in layer[:, 1] for z in layer[:, 2]]
            corners.append(front + np.array(local) @ axes)
        at = np.concatenate(corners)
        found = []
        for module, (type_, front, axes) in enumerate(zip(self._types, self._fronts, self._axes)):
            if (at @ axes[0]).max() <= front @ axes[0] + _TOUCHING_MM:
                continue
            low, high = self._boxes[type_][:, 0].min(0), self._boxes[type_][:, 1].max(0)
            middle = front + (low + high) / 2 @ axes
            found.append((module, middle, float(np.linalg.norm(high - low)) / 2))
        return found


def _length_in(box: Millimetres, begin: Millimetres, end: Millimetres) -> Millimetres:
    """Of the segments, the length of the part that lies in a box: ``[end][axis]``."""
    along = end - begin
    still = along == 0
    with np.errstate(divide="ignore", invalid="ignore"):
        one, other = (box[0] - begin) / along, (box[1] - begin) / along
    outside = (still & ((begin < box[0]) | (begin >= box[1]))).any(1)
    enter = np.where(still, 0, np.minimum(one, other)).max(1).clip(0)
    leave = np.where(still, 1, np.maximum(one, other)).min(1).clip(None, 1)
    length = np.maximum(leave - enter, 0) * np.linalg.norm(along, axis=1)
    return np.asarray(np.where(outside, 0, length))
