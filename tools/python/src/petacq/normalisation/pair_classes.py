"""Which pairs of crystals of a scanner in the long form have the same factors: tables of its normalisation file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from petacq.calibration import read_table
from petacq.errors import CalibrationError
from petacq.scanner import Scanner
from petacq.scanner.arrangement import Integers

_MOST_MODULES = 2048
_SWAPPED, _COLUMNS_A, _ROWS_A, _COLUMNS_B, _ROWS_B = 1, 2, 4, 8, 16


@dataclass(frozen=True)
class PairClasses:
    """Pairs of modules that a symmetry of the scanner maps on each other are a class; they lie in it with a turn."""

    module: Integers  #: [crystal]
    columns_of: tuple[Integers, Integers]  #: [crystal] its column; the same if its module is reversed
    rows_of: tuple[Integers, Integers]
    pair_class: Integers  #: [module][module]
    pair_turn: Integers  #: [module][module] bits: how it lies in its class
    stride: tuple[Integers, Integers]  #: [class]: columns, rows of its second module
    start: tuple[Integers, Integers]  #: [class]: its first transaxial, axial factor
    counts: tuple[int, int]  #: of transaxial, axial factors

    @classmethod
    def read(cls, file: Any, scanner: Scanner) -> PairClasses | None:
        """None if the file has no geometric factors. Raises CalibrationError for tables that do not belong together."""
        if "columns" not in file:
            return None
        crystals = scanner.crystal_count
        columns = read_table(file, "columns", np.uint16, (None,)).astype(np.int64)
        modules = len(columns)
        if modules > _MOST_MODULES:
            raise CalibrationError(f'data set "columns": expected at most {_MOST_MODULES} modules, found {modules}')
        rows = read_table(file, "rows", np.uint16, (modules,)).astype(np.int64)
        module = _below(file, "module", np.uint32, (crystals,), modules)
        places = []
        for name, most in (("column", columns), ("row", rows)):
            both = [_below(file, prefix + name, np.uint16, (crystals,), most[module]) for prefix in ("", "mirrored_")]
            places.append((both[0], both[1]))
        class_a = _below(file, "class_a", np.uint32, (None,), modules)
        class_b = _below(file, "class_b", np.uint32, (len(class_a),), modules)
        pair_class = _below(file, "pair_class", np.uint32, (modules, modules), len(class_a))
        pair_turn = _below(file, "pair_turn", np.uint8, (modules, modules), 32)
        swapped = pair_turn & _SWAPPED != 0
        alike = pair_class == pair_class.T
        for sizes in (columns, rows):
            of_a, of_b = sizes[class_a][pair_class], sizes[class_b][pair_class]
            alike &= (np.where(swapped, of_b, of_a) == sizes[:, None]) & (np.where(swapped, of_a, of_b) == sizes)
        if not alike.all():
            raise CalibrationError(
                'data set "pair_class": expected the same in either order, and modules with as many columns and rows as those '
                "of their class"
            )
        ends = [np.cumsum(sizes[class_a] * sizes[class_b]) for sizes in (columns, rows)]
        start = [np.concatenate([[0], end[:-1]]) for end in ends]
        return cls(
            module,
            places[0],
            places[1],
            pair_class,
            pair_turn,
            (columns[class_b], rows[class_b]),
            (start[0], start[1]),
            (int(ends[0][-1]), int(ends[1][-1])),
        )

    def entries(self, a: Integers, b: Integers) -> tuple[Integers, Integers]:
        """The transaxial and the axial factor of pairs."""
        of, turn = self.pair_class[self.module[a], self.module[b]], self.pair_turn[self.module[a], self.module[b]]
        swapped = turn & _SWAPPED != 0
        out: list[Integers] = []
        for places, bit_a, bit_b, stride, start in zip(
            (self.columns_of, self.rows_of), (_COLUMNS_A, _ROWS_A), (_COLUMNS_B, _ROWS_B), self.stride, self.start
        ):
            at_a = np.where(turn & bit_a, places[1][a], places[0][a])
            at_b = np.where(turn & bit_b, places[1][b], places[0][b])
            first, second = np.where(swapped, at_b, at_a), np.where(swapped, at_a, at_b)
            out.append(np.asarray(start[of] + first * stride[of] + second, np.int64))
        return out[0], out[1]

    def pair_groups(self) -> Integers:
        """``[module][module]``: the same number for pairs of modules whose crystals have the same factors, one by one."""
        return self.pair_class * 32 + self.pair_turn


def _below(
    file: Any, name: str, kind: type[Any], shape: tuple[int | None, ...], end: int | npt.NDArray[np.int64]
) -> Integers:
    values = read_table(file, name, kind, shape).astype(np.int64)
    if not (values < end).all():
        what = str(end) if isinstance(end, int) else "how many the module has"
        raise CalibrationError(f'data set "{name}": expected numbers below {what}')
    return values
