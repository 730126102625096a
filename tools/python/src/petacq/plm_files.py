"""Several list-mode files as one sequence of records: those of a set, and the parts of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from petacq.coverage import Coverage, coverage_of_file, run_json_near, united
from petacq.errors import PlmError
from petacq.layout import Records
from petacq.plm import Missing, PlmFile
from petacq.records import RecordBlocks


class _Joined(RecordBlocks):
    """Blocks of several files in an order of their own."""

    def __init__(self, files: Sequence[PlmFile | PlmSet], order: npt.NDArray[np.intp] | None = None) -> None:
        first = files[0]
        self.kind, self.dtype = first.kind, first.dtype
        for file in files:
            if file.kind != first.kind:
                raise PlmError(f"{file.path}: holds {file.kind}, {first.path} {first.kind}")
            if file.description.get("run_id") != first.description.get("run_id"):
                raise PlmError(f"{file.path}: of another run than {first.path}")
        self.path = first.path
        self.missing: tuple[Missing, ...] = tuple(m for file in files for m in file.missing)
        counts = [file.block_count for file in files]
        lengths = np.concatenate([np.diff(file._ends, prepend=np.uint64(0)) for file in files])
        self._sources = tuple(files)
        self._file_of = np.repeat(np.arange(len(counts)), counts)
        self._block_of = np.concatenate([np.arange(count) for count in counts])
        self._first_time = np.concatenate([file._first_time for file in files])
        self._last_time = np.concatenate([file._last_time for file in files])
        if order is not None:
            lengths, self._file_of, self._block_of = lengths[order], self._file_of[order], self._block_of[order]
            self._first_time, self._last_time = self._first_time[order], self._last_time[order]
        self._ends = np.cumsum(lengths, dtype=np.uint64)

    def __repr__(self) -> str:
        state = "" if self.complete else ", incomplete"
        where = str(self.path)
        return f"<{type(self).__name__} {where!r} and {len(self._sources) - 1} more: {len(self):,} {self.kind}{state}>"

    @property
    def complete(self) -> bool:
        """All files exist and were closed properly."""
        return not self.missing

    @property
    def description(self) -> dict[str, Any]:
        """The description of the first file."""
        return self._sources[0].description

    @property
    def coverage(self) -> Coverage:
        """What all files cover together. Raises CoverageError if they do not belong together."""
        return self._sources[0].coverage

    @property
    def tick_ps(self) -> float:
        return self._sources[0].tick_ps

    def block(self, number: SupportsIndex, verify: bool = False) -> Records:
        index = self._block_number(number)
        return self._sources[int(self._file_of[index])].block(int(self._block_of[index]), verify)

    def verify(self) -> None:
        if self.missing:
            raise PlmError(str(self.missing[0]))
        for file in self._sources:
            file.verify()

    def _described(self) -> dict[str, Any]:
        return self.description


class PlmSet(_Joined):
    """The files of a set, which were written side by side: block b of n files is in file b mod n."""

    def __init__(self, paths: Mapping[int, Path]) -> None:
        """``paths``: by number, from 1. Raises PlmError if no file can be read, or if one is of another set."""
        files: dict[int, PlmFile] = {}
        unreadable: dict[int, PlmError] = {}
        for number, path in sorted(paths.items()):
            try:
                files[number] = PlmFile(path)
            except PlmError as error:
                unreadable[number] = error
        if not files:
            raise next(iter(unreadable.values()))
        first = next(iter(files.values()))
        for number, file in files.items():
            if (file.place + 1, file.places) != (number, first.places):
                raise PlmError(f"{file.path}: is not file {number} of a set of {first.places}")
        #: The files that can be read.
        self.files = tuple(files.values())
        numbers = np.concatenate([file.place + np.arange(file.block_count) * file.places for file in self.files])
        order = np.argsort(numbers, kind="stable")
        super().__init__(self.files, order)
        ordered = np.all(self._last_time[:-1] <= self._first_time[1:])
        if not ordered:
            raise PlmError(f"{first.path}: a block of its set begins before the one in front of it ends")
        for number in range(1, first.places + 1):
            if number in files:
                continue
            path = first.path.with_name(f"{first.path.name.split('.')[0]}.{number}.plm")
            why = str(unreadable[number]) if number in unreadable else f"file {number} of the set is not there"
            self.missing += (Missing(path, None, 0, why),)
        gap = self._find_gap(numbers[order])
        if gap:
            self.missing += (Missing(first.path, None, 0, gap),)

    def _find_gap(self, numbers: npt.NDArray[np.intp]) -> str:
        """What is missing between the blocks; empty if nothing is."""
        behind_gaps = np.flatnonzero(np.diff(numbers, prepend=-1) != 1).tolist()
        if not behind_gaps:
            return ""
        first, last = behind_gaps[0], behind_gaps[-1]
        missing = self._first_record(last) - self._start(last)
        return f"{missing} records are missing between the blocks of the set, the first ones behind record {self._start(first)}"

    def _first_record(self, index: int) -> int:
        return self.files[int(self._file_of[index])].first_record(int(self._block_of[index]))

    def verify(self) -> None:
        super().verify()
        for index in range(self.block_count):
            if self._first_record(index) != self._start(index):
                raise PlmError(f"{self.path}: block {index} of its set counts other records before it than there are")


class PlmFiles(_Joined):
    """The parts of a split run, one after the other."""

    def __init__(self, files: Sequence[PlmFile | PlmSet], missing: Sequence[Missing] = ()) -> None:
        if not files:
            raise ValueError("PlmFiles: at least one file")
        #: Each is a file or a set.
        self.files = tuple(files)
        super().__init__(files)
        for before, file in zip(files, files[1:]):
            if before.last_time is not None and file.first_time is not None and file.first_time < before.last_time:
                raise PlmError(f"{file.path}: begins before {before.path} ends")
        self.missing = tuple(missing) + self.missing

    @cached_property
    def coverage(self) -> Coverage:
        if "coverage" in self.description:
            return united([file.coverage for file in self.files])
        # The parts of a run of 1.0 say the same.
        run = run_json_near(self.path, self.description.get("run_id"))
        return coverage_of_file(self.path, self.description, run, self.complete)
