"""Reads where crystals are from the files of CASToR and STIR."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from petacq.errors import ScannerError
from petacq.scanner.arrangement import Integers, Millimetres
from petacq.scanner.find_modules import Crystals

#: Of numbers of 32 bits: a few units of the last place of the largest one.
TOLERANCE_F32 = 4 * 2.0**-23


def read_castor(path: str | os.PathLike[str]) -> Crystals:
    """A scanner of CASToR: the header (.hscan) and the look-up table (.lut) beside it. Raises ScannerError, OSError."""
    header = Path(path).with_suffix(".hscan")
    table = header.with_suffix(".lut")
    keys = _keys(header)
    layers = [int(n) for n in _numbers(header, keys, "number of crystals in layer")]
    data = table.read_bytes()
    if len(data) != 24 * sum(layers) or min(layers, default=0) < 1:
        raise ScannerError(
            f"{table}: expected 24 bytes for each of the {sum(layers)} crystals of {header.name}, found {len(data)} bytes"
        )
    values = np.frombuffer(data, "<f4").astype(float).reshape(-1, 6)
    if not np.isfinite(values).all():
        raise ScannerError(f"{table}: expected finite numbers; those of crystal {_first(~np.isfinite(values).all(1))} are not")
    length = np.linalg.norm(values[:, 3:], axis=1)
    if (np.abs(length - 1) > 1e-3).any():
        raise ScannerError(f"{table}: expected directions of length 1; that of crystal {_first(np.abs(length - 1) > 1e-3)} is not")
    outward = values[:, 3:] / length[:, None]
    sizes = np.empty((len(values), 3))
    for column, key in enumerate(("crystals size depth", "crystals size trans", "crystals size axial")):
        of_layers = _numbers(header, keys, key)
        if len(of_layers) != len(layers) or min(of_layers) <= 0:
            raise ScannerError(f"{header}: {key}: expected a size above 0 for each of the {len(layers)} layers")
        sizes[:, column] = np.repeat(of_layers, layers)
    front = values[:, :3] - outward * sizes[:, :1] / 2
    tolerance = float(np.abs(values[:, :3]).max()) * TOLERANCE_F32
    return Crystals(front, outward, sizes, np.zeros(len(values), np.int64), max(tolerance, 1e-6))


def _keys(path: Path) -> dict[str, str]:
    pairs = (line.split("#")[0].partition(":") for line in path.read_text(encoding="utf-8", errors="replace").splitlines())
    return {key.strip().lower(): value.strip() for key, colon, value in pairs if colon}


def _numbers(path: Path, keys: dict[str, str], key: str) -> list[float]:
    try:
        numbers = [float(part) for part in keys[key].split(",")]
    except KeyError:
        raise ScannerError(f"{path}: expected the key {key!r} of a scanner of CASToR with a look-up table") from None
    except ValueError:
        raise ScannerError(f"{path}: {key}: expected numbers, found {keys[key]!r}") from None
    if not np.isfinite(numbers).all():
        raise ScannerError(f"{path}: {key}: expected numbers, found {keys[key]!r}")
    return numbers


def _first(wrong: npt.NDArray[np.bool_]) -> int:
    return int(np.flatnonzero(wrong)[0])


def read_stir_map(path: str | os.PathLike[str], length_mm: Sequence[float], depth_mm: Sequence[float]) -> Crystals:
    """A crystal map of STIR: ring, detector, layer (or no layer), x, y, z. It holds points alone: ``length_mm`` and
    ``depth_mm`` are the length of the crystals, and how far behind their front faces the points are, one for all layers or one
    for each. A row of crystals that lie on a line is flat; crystals without such neighbours face the axis.

    Raises ScannerError, OSError."""
    numbers, points, tolerance = _map_lines(Path(path))
    layers = int(numbers[:, 2].max()) + 1
    lengths, depths = (
        _of_layers(name, values, layers) for name, values in (("--length-mm", length_mm), ("--depth-mm", depth_mm))
    )
    if (lengths <= 0).any() or (depths < 0).any() or (depths > lengths).any():
        raise ScannerError("--length-mm, --depth-mm: expected lengths above 0, and depths from 0 to the length")
    outward, width = _directions(numbers, points, tolerance)
    sizes = np.column_stack([lengths[numbers[:, 2]], width, _heights(numbers, points, tolerance)])
    front = points - outward * depths[numbers[:, 2], None]
    return Crystals(front, outward, sizes, np.zeros(len(points), np.int64), 4 * tolerance)


def _of_layers(name: str, values: Sequence[float], layers: int) -> Millimetres:
    if len(values) not in (1, layers):
        raise ScannerError(f"{name}: expected one value, or one for each of the {layers} layers, found {len(values)}")
    return np.broadcast_to(np.array(values, float), (layers,))


def _map_lines(path: Path) -> tuple[Integers, Millimetres, float]:
    """Ring, detector and layer; x, y and z; and the last digit of these."""
    numbers, points = [], []
    digits = 0
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        fields = line.split("#")[0].replace(",", " ").split()
        if not fields:
            continue
        try:
            at = [int(field) for field in fields[:-3]]
            point = [float(field) for field in fields[-3:]]
        except ValueError:
            at, point = [], []
        if len(at) not in (2, 3) or min(at) < 0 or not np.isfinite(point).all():
            raise ScannerError(f"{path}:{number}: expected ring, detector, layer (if there are any), x, y, z; found {line!r}")
        numbers.append([*at, 0][:3])
        points.append(point)
        digits = max(digits, *(len(field.partition(".")[2]) for field in fields[-3:]))
    if not numbers:
        raise ScannerError(f"{path}: expected a line for each crystal, found none")
    found = np.array(numbers, np.int64)
    order = np.lexsort((found[:, 1], found[:, 0], found[:, 2]))
    found, places = found[order], np.array(points)[order]
    twice = (np.diff(found, axis=0) == 0).all(1)
    if twice.any():
        raise ScannerError(f"{path}: expected each crystal once, found ring, detector, layer {found[_first(twice)].tolist()} again")
    return found, places, 10.0 ** -min(max(digits, 1), 6)


def _directions(numbers: Integers, points: Millimetres, tolerance: float) -> tuple[Millimetres, Millimetres]:
    """``[crystal]``: the direction of each, and how far it is from its neighbours along its ring."""
    outward = np.zeros_like(points)
    width = np.empty(len(points))
    starts = np.flatnonzero((np.diff(numbers[:, [0, 2]], axis=0) != 0).any(1)) + 1
    for ring in np.split(np.arange(len(points)), starts):
        xy = points[ring, :2]
        step = np.roll(xy, -1, 0) - xy
        apart = np.hypot(step[:, 0], step[:, 1])
        across = np.roll(xy, -1, 0) - np.roll(xy, 1, 0)
        before = xy - np.roll(xy, 1, 0)
        chord = np.hypot(across[:, 0], across[:, 1])
        with np.errstate(divide="ignore", invalid="ignore"):
            off = np.abs(before[:, 0] * across[:, 1] - before[:, 1] * across[:, 0]) / chord
        on_line = (off <= 2 * tolerance) & (chord > np.maximum(apart, np.roll(apart, 1)))
        linked = on_line | np.roll(on_line, -1)  # with the next one
        for run in _runs(linked):
            direction = xy[run[-1]] - xy[run[0]]
            normal = np.array([direction[1], -direction[0]])
            if not normal.any():
                normal = xy[run[0]].copy()
            if normal @ xy[run].mean(0) < 0:
                normal = -normal
            length = float(np.hypot(*normal))
            if length == 0:
                raise ScannerError(f"a crystal of ring {numbers[ring[0], 0]}: expected a place away from the axis")
            outward[ring[run], :2] = normal / length
        width[ring] = np.minimum(apart, np.roll(apart, 1))
    for layer in np.unique(numbers[:, 2]):
        here = numbers[:, 2] == layer
        width[here] = width[here].min() if len(np.unique(numbers[here, 1])) > 1 else 1.0
    return outward, width


def _runs(linked: npt.NDArray[np.bool_]) -> list[Integers]:
    """Places around a ring that are linked with the next one, as runs."""
    count = len(linked)
    ends = np.flatnonzero(~linked)
    if not len(ends):
        return [np.arange(count)]
    first = int(ends[0]) + 1
    order = (first + np.arange(count)) % count
    return np.split(order, np.flatnonzero(~linked[order])[:-1] + 1)


def _heights(numbers: Integers, points: Millimetres, tolerance: float) -> Millimetres:
    """``[crystal]``: the smallest distance of two rings of its layer."""
    heights = np.empty(len(points))
    for layer in np.unique(numbers[:, 2]):
        here = numbers[:, 2] == layer
        steps = np.diff(np.unique(points[here, 2]))
        steps = steps[steps > 2 * tolerance]
        heights[here] = steps.min() if len(steps) else 1.0
    return heights
