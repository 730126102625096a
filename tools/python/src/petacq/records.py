"""A long sequence of records in blocks: the common base of one file and several files."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from petacq.layout import Records, field_type


class RecordBlocks(ABC):
    """Records in the order of time, in blocks that are mapped from disk.

    What comes in blocks (``blocks()``, ``block(i)``, ``between()``) is a read-only view of the file: nothing is read
    before it is looked at, and nothing is copied. What goes across blocks (``records()``, ``column()``, and slices
    that do not lie in one block) is a copy.

    Views stay valid as long as they are referenced. Safe for several threads, except for ``close()``.
    """

    dtype: np.dtype[np.void]
    #: "coincidences", "singles", "tags" or "seconds".
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
    def __getitem__(self, key: SupportsIndex) -> np.void: ...
    @overload
    def __getitem__(self, key: slice) -> Records: ...
    @overload
    def __getitem__(self, key: str) -> npt.NDArray[Any]: ...

    def __getitem__(self, key: SupportsIndex | slice | str) -> np.void | npt.NDArray[Any]:
        """``file[7]``: a record. ``file[7:9]``: records; a view if they are in one block, otherwise a copy.
        ``file["time"]``: a column, as ``column("time")``."""
        if isinstance(key, str):
            return self.column(key)
        if isinstance(key, slice):
            return self._slice(key)
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
        """All fields of all records, one contiguous array for each: a copy. As pandas.DataFrame takes them."""
        return {name: self.column(name) for name in self.dtype.names or ()}

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
