"""A long sequence of records in blocks: the common base of one file and several files."""

from __future__ import annotations

import operator
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from petacq.arrow.columns import arrays_of, batch_of, chosen, schema_of
from petacq.arrow.parquet import write_parquet
from petacq.coverage_1_0 import object_of
from petacq.errors import PlmError
from petacq.layout import Records, field_type, fields_type
from petacq.optional import pandas_module, pyarrow_module

if TYPE_CHECKING:
    import pandas
    import pyarrow

#: A mask, numbers of records, or names of columns.
Selection = npt.NDArray[Any] | list[bool] | list[int] | list[str]


class RecordBlocks(ABC):
    """Records in the order of time, in blocks that are mapped from disk.

    What comes in blocks (``blocks()``, ``block(i)``, ``between()``) is a read-only view of the file: nothing is read
    before it is looked at, and nothing is copied. What goes across blocks (``records()``, ``column()``, masks, lists, and
    slices that do not lie in one block) is a copy.

    Views stay valid as long as they are referenced. Safe for several threads, except for ``close()``.
    """

    #: Of several files the first.
    path: Path
    dtype: np.dtype[np.void]
    #: "coincidences", "singles", "triples", "tags" or "seconds".
    kind: str
    _ends: npt.NDArray[np.uint64]  # records up to and including each block
    _first_time: npt.NDArray[np.uint64]
    _last_time: npt.NDArray[np.uint64]

    @abstractmethod
    def block(self, number: SupportsIndex, verify: bool = False) -> Records:
        """One block: a read-only view. With ``verify`` its CRC is checked first."""

    @abstractmethod
    def verify(self) -> None:
        """Reads everything. Raises PlmError, with the reason, unless every byte is as it was written."""

    @abstractmethod
    def _described(self) -> dict[str, Any]:
        """The description of the file, or of the first one."""

    @property
    def time_field(self) -> str:
        """The first field of every record, by which they are in order: "time", of seconds "start"."""
        return (self.dtype.names or ("",))[0]

    @property
    def block_count(self) -> int:
        return len(self._ends)

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    @property
    def first_time(self) -> int | None:
        """Time of the first record, ticks; None if there are no records."""
        return int(self._first_time[0]) if len(self._ends) else None

    @property
    def last_time(self) -> int | None:
        """Time of the last record, ticks; None if there are no records."""
        return int(self._last_time[-1]) if len(self._ends) else None

    def blocks(self, verify: bool = False) -> Iterator[Records]:
        """Every block, as a read-only view. With ``verify`` the CRC of each is checked before it is returned."""
        for number in range(self.block_count):
            yield self.block(number, verify)

    def __iter__(self) -> Iterator[Any]:
        """Record by record. Slow: loop over ``blocks()`` and let NumPy loop over the records."""
        for block in self.blocks():
            yield from block

    @overload
    def __getitem__(self, key: int | np.integer[Any]) -> np.void: ...
    @overload
    def __getitem__(self, key: str) -> npt.NDArray[Any]: ...
    @overload
    def __getitem__(self, key: slice | Selection) -> Records: ...

    def __getitem__(self, key: int | np.integer[Any] | slice | str | Selection) -> np.void | npt.NDArray[Any]:
        """As NumPy does it, without reading more than is asked for:

        ``file[7]``: a record. ``file[7:9]``: records; a view if they are in one block, otherwise a copy.
        ``file["time"]``: a column, as ``column("time")``. ``file[["time", "kind"]]``: records with these columns only.
        ``file[mask]``: the records where the mask, one truth value for each record, is true. ``file[[7, 3]]``: the
        records of these numbers, in this order. Lists and masks give copies.

        Raises IndexError for a number that is not there and for a mask of another length, PlmError for a column that
        is not there, TypeError for anything else."""
        if isinstance(key, str):
            return self.column(key)
        if isinstance(key, slice):
            return self._slice(key)
        if isinstance(key, (bool, np.ndarray)) or not isinstance(key, SupportsIndex):
            return self._selected(key)
        index = operator.index(key)
        if not -len(self) <= index < len(self):
            raise IndexError(f"record {index} of {len(self)}")
        index %= len(self)
        number = int(np.searchsorted(self._ends, np.uint64(index), "right"))
        record: np.void = self.block(number)[index - self._start(number)]
        return record

    def records(self) -> Records:
        """All records in one array: a copy of the whole file in memory."""
        return self._gather(0, len(self))

    def column(self, name: str) -> npt.NDArray[Any]:
        """One field of all records: a copy."""
        out = np.empty(len(self), field_type(self.dtype, name))
        at = 0
        for block in self.blocks():
            out[at : at + len(block)] = block[name]
            at += len(block)
        return out

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """All fields of all records, one contiguous array for each: a copy."""
        return {name: self.column(name) for name in self.dtype.names or ()}

    def to_pandas(self, columns: Sequence[str] | None = None) -> pandas.DataFrame:
        """A pandas.DataFrame with a row for each record: a copy. ``columns``: only these; by default all that have one
        number for each record, which leaves out the arrays by crystal or module of seconds.

        Raises ImportError without pandas, PlmError for a column that is not there or has an array for each record."""
        frame = pandas_module().DataFrame
        if columns is None:
            columns = [name for name in self.dtype.names or () if not field_type(self.dtype, name).shape]
        for name in columns:
            shape = field_type(self.dtype, name).shape
            if shape:
                raise PlmError(f"column {name!r} has {shape[0]} numbers for each record: use [{name!r}], a NumPy array")
        return frame({name: self.column(name) for name in columns}, columns=list(columns), copy=False)

    @property
    def untold(self) -> list[str]:
        """What the description of imported records says that they do not tell, such as their energies: phrases of
        ``Coverage.unknown``. None for files of petacqd 1.0, which do not say so."""
        return [str(text) for text in object_of(self._described(), "coverage").get("unknown") or ()]

    def to_arrow(self, columns: Sequence[str] | None = None) -> pyarrow.Table:
        """A pyarrow.Table with a row for each record: one copy. ``columns``: only these. Arrays by crystal or module of seconds
        are lists of fixed size. What the file does not tell, such as the energies of imported records, is named in the metadata.

        Raises ImportError without pyarrow, PlmError for a column that is not there."""
        schema = self._arrow_schema(columns)
        return pyarrow_module().Table.from_arrays(arrays_of(self.column, schema), schema=schema)

    def arrow_reader(self, columns: Sequence[str] | None = None) -> pyarrow.RecordBatchReader:
        """The same block by block, for files larger than memory: a pyarrow.RecordBatchReader."""
        schema = self._arrow_schema(columns)
        batches = (batch_of(block, schema) for block in self.blocks())
        return pyarrow_module().RecordBatchReader.from_batches(schema, batches)

    def to_parquet(self, path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> Path:
        """Writes the records, or these columns of them, to a Parquet file, block by block; petacq.read_parquet reads it.

        Returns its path. Raises FileExistsError if there is such a file, OSError, and as ``to_arrow``."""
        reader = self.arrow_reader(columns)
        return write_parquet(Path(path), reader.schema, reader)

    def _arrow_schema(self, columns: Sequence[str] | None) -> Any:
        described = self._described()
        about = {"kind": self.kind} | {key: described[key] for key in ("run_id", "tick_ps", "crystals") if key in described}
        if unknown := self.untold:
            about["unknown"] = unknown
        return schema_of(self.dtype, chosen(self.dtype, columns), about)

    def between(self, begin: int, end: int, verify: bool = False) -> Iterator[Records]:
        """The records with ``begin <= time < end`` (ticks), block by block, as read-only views. The index finds
        them: blocks outside are not read."""
        first, last = self._blocks_between(begin, end)
        for number in range(first, last):
            block = self.block(number, verify)
            low, high = self._edges(block, begin, end)
            if low < high:
                yield block[low:high]

    def find(self, begin: int, end: int) -> slice:
        """Which records have ``begin <= time < end`` (ticks)."""
        first, last = self._blocks_between(begin, end)
        if first >= last:
            return slice(0, 0)
        low, _ = self._edges(self.block(first), begin, end)
        _, high = self._edges(self.block(last - 1), begin, end)
        return slice(self._start(first) + low, self._start(last - 1) + high)

    def _start(self, number: int) -> int:
        return int(self._ends[number - 1]) if number else 0

    def _blocks_between(self, begin: int, end: int) -> tuple[int, int]:
        begin, end = operator.index(begin), operator.index(end)
        if end <= begin or end <= 0 or begin >= 1 << 64:
            return 0, 0
        first = int(np.searchsorted(self._last_time, np.uint64(max(begin, 0)), "left"))
        last = int(np.searchsorted(self._first_time, np.uint64(min(end, (1 << 64) - 1)), "left"))
        if end >= 1 << 64:
            last = self.block_count
        return first, last

    def _edges(self, block: Records, begin: int, end: int) -> tuple[int, int]:
        time = block[self.time_field]
        low = int(np.searchsorted(time, np.uint64(max(begin, 0)), "left"))
        high = len(time) if end >= 1 << 64 else int(np.searchsorted(time, np.uint64(end), "left"))
        return low, high

    def _selected(self, key: Any) -> Records:
        """The records of a mask or of a list of numbers, or all records with a list of columns."""
        if not isinstance(key, list) and not hasattr(key, "__array__"):
            raise _unusable(key)
        try:
            wanted = np.asarray(key)
        except ValueError:  # rows of different lengths
            raise _unusable(key) from None
        if wanted.ndim != 1:
            raise IndexError(f"a selection of {wanted.ndim} dimensions: expected one")
        if not len(wanted) and isinstance(key, list):
            return np.empty(0, self.dtype)
        if wanted.dtype.kind == "U":
            return self._of_columns(list(map(str, wanted)))
        if wanted.dtype.kind == "b":
            return self._masked(wanted)
        if wanted.dtype.kind in "iu":
            return self._picked(wanted)
        raise _unusable(key)

    def _of_columns(self, names: list[str]) -> Records:
        out = np.empty(len(self), fields_type(self.dtype, names))
        at = 0
        for block in self.blocks():
            for name in names:
                out[name][at : at + len(block)] = block[name]
            at += len(block)
        return out

    def _masked(self, mask: npt.NDArray[np.bool_]) -> Records:
        if len(mask) != len(self):
            raise IndexError(f"a mask of {len(mask)} truth values for {len(self)} records")
        out = np.empty(int(np.count_nonzero(mask)), self.dtype)
        at = 0
        for number in range(self.block_count):
            of_block = mask[self._start(number) : int(self._ends[number])]
            count = int(np.count_nonzero(of_block))
            if count:
                out[at : at + count] = self.block(number)[of_block]
                at += count
        return out

    def _picked(self, numbers: npt.NDArray[np.integer[Any]]) -> Records:
        there = (numbers >= -len(self)) & (numbers < len(self))
        if not np.all(there):
            raise IndexError(f"record {numbers[~there][0]} of {len(self)}")
        places = numbers.astype(np.int64)
        places[places < 0] += len(self)
        order = np.argsort(places, kind="stable")  # every block is read once
        ordered = places[order]
        out = np.empty(len(places), self.dtype)
        for number in np.unique(np.searchsorted(self._ends, ordered.astype(np.uint64), "right")):
            start = self._start(number)
            low, high = np.searchsorted(ordered, [start, int(self._ends[number])])
            out[order[low:high]] = self.block(number)[ordered[low:high] - start]
        return out

    def _slice(self, key: slice) -> Records:
        start, stop, step = key.indices(len(self))
        if step == 1:
            return self._gather(start, stop, view=True)
        wanted = range(start, stop, step)
        if not wanted:
            return np.empty(0, self.dtype)
        low, high = min(wanted[0], wanted[-1]), max(wanted[0], wanted[-1])
        # Block by block, so that a long stride does not load everything into memory.
        parts = []
        for number in range(*self._blocks_of(low, high + 1)):
            block_start = self._start(number)
            inside = range(max(low, block_start), min(high + 1, int(self._ends[number])))
            skip = -(inside.start - start) % abs(step)
            parts.append(self.block(number)[inside.start - block_start + skip : inside.stop - block_start : abs(step)])
        found: Records = np.concatenate(parts)
        return found[::-1] if step < 0 else found

    def _blocks_of(self, start: int, stop: int) -> tuple[int, int]:
        first = int(np.searchsorted(self._ends, np.uint64(start), "right"))
        last = int(np.searchsorted(self._ends, np.uint64(stop), "left")) + 1
        return first, min(last, self.block_count)

    def _gather(self, start: int, stop: int, view: bool = False) -> Records:
        if stop <= start:
            return np.empty(0, self.dtype)
        first, last = self._blocks_of(start, stop)
        if view and last - first == 1:
            begin = self._start(first)
            return self.block(first)[start - begin : stop - begin]
        out = np.empty(stop - start, self.dtype)
        for number in range(first, last):
            begin = self._start(number)
            low, high = max(start, begin), min(stop, int(self._ends[number]))
            out[low - start : high - start] = self.block(number)[low - begin : high - begin]
        return out

    def _block_number(self, number: SupportsIndex) -> int:
        index = operator.index(number)
        if not -self.block_count <= index < self.block_count:
            raise IndexError(f"block {index} of {self.block_count}")
        return index % self.block_count


def _unusable(key: object) -> TypeError:
    return TypeError(
        f"records cannot be selected with {type(key).__name__} {key!r:.40}: expected a number, a slice, a mask, a list of"
        " numbers, the name of a column or a list of names"
    )
