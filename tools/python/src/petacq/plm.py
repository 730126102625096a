"""A list-mode file (.plm), mapped into memory."""

from __future__ import annotations

import json
import os
import re
import stat
import struct
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self, SupportsIndex

import numpy as np
import numpy.typing as npt

from petacq import layout
from petacq.compression import decompress
from petacq.coverage import Coverage, coverage_of_file, run_json_near
from petacq.crc32c import crc32c, crc32c_combine
from petacq.errors import IncompleteWarning, PlmError
from petacq.layout import BLOCK_HEADER, FILE_HEADER, INDEX_ENTRY, KINDS, TRAILER, Records, value
from petacq.records import RecordBlocks

_BLOCK = struct.Struct("<8sQIIQQQIIII")
_MOST_TOLD = 20


@dataclass(frozen=True)
class Missing:
    """The missing part of a file that was not closed properly."""

    path: Path
    #: Where the last whole block ends; None for a file that is missing as a whole.
    offset: int | None
    #: Unreadable bytes after that.
    bytes: int
    why: str

    def __str__(self) -> str:
        if self.offset is None:
            return f"{self.path}: {self.why}"
        return f"{self.path}: {self.why}; {self.bytes} bytes behind the last whole block (offset {self.offset})"


class PlmFile(RecordBlocks):
    """One list-mode file.

    Opening checks the header and the index, not the records: those are only mapped. ``verify=True`` reads and checks
    everything. A file without a sound index was not closed properly (crash, power cut, a run that is still written): it
    is read once through, every CRC checked, and holds what comes before the first block that is not whole;
    ``complete`` is False then, ``missing`` says what is not there, and an IncompleteWarning is issued.

    A file of a set holds every n-th block of a run; ``open_run`` puts the files of a set together.

    The file must not be cut while it is open: the system ends a program that looks at mapped bytes that are gone.

    Raises PlmError for a file that is none or is damaged, OSError when it cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str], verify: bool = False) -> None:
        self.path = Path(path)
        self._bytes = self._map()
        self._header = self._read_header()
        self.kind, dtype = KINDS[value(self._header, "kind")]
        #: The JSON of the file: ``run_id``, ``tick_ps``, ``crystals`` and the other keys in docs/reference/list-mode-format.md.
        self.description: dict[str, Any] = self._read_description()
        self.dtype = self._described_type() if dtype is None else dtype
        #: Which file of how many, counted from 0: block b of a set of n files is in file b mod n.
        self.place, self.places = self._read_place()
        self.missing: tuple[Missing, ...] = ()
        self.warning: IncompleteWarning | None = None
        self._trailer: Any = None
        index = self._read_index()
        if index is None:
            index = self._walk()
        self._set_index(index)
        if self.missing:
            self.warning = IncompleteWarning(f"{self.missing[0]}; {len(self)} records are there")
            warnings.warn(self.warning, stacklevel=2)
        elif verify:
            self.verify()

    def __repr__(self) -> str:
        state = "" if self.complete else ", incomplete"
        return f"<PlmFile {str(self.path)!r}: {len(self):,} {self.kind} in {self.block_count} blocks{state}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file. The mapping lives as long as the last array that is a view of it."""
        self._bytes = np.empty(0, np.uint8)
        self._set_index(np.empty(0, INDEX_ENTRY))

    @property
    def complete(self) -> bool:
        """The file was closed properly: it has an index."""
        return not self.missing

    @property
    def tick_ps(self) -> float:
        """Picoseconds of one tick."""
        tick = self.description.get("tick_ps")
        if isinstance(tick, bool) or not isinstance(tick, (int, float)) or not tick > 0:
            raise PlmError(f"{self.path}: its description has no tick_ps")
        return float(tick)

    @cached_property
    def coverage(self) -> Coverage:
        """What the file covers: its times, its rules, where its records come from. Raises CoverageError for what is none."""
        run = run_json_near(self.path, self.description.get("run_id"))
        # The coincidences of a run that was not split are one file or one set.
        is_whole = re.fullmatch(rf"{self.kind}(\.\d+)?\.plm", self.path.name) is not None
        return coverage_of_file(self.path, self.description, run, is_whole)

    @property
    def payload_crc(self) -> int:
        """CRC-32C of all records, one after the other: the same for the same data, wherever blocks begin."""
        total = 0
        for entry in self._index:
            total = crc32c_combine(total, int(entry["payload_crc"]), int(entry["records"]) * self.dtype.itemsize)
        return total

    def block(self, number: SupportsIndex, verify: bool = False) -> Records:
        index = self._block_number(number)
        entry = self._index[index]
        if verify:
            fault = self._block_fault(index)
            if fault:
                raise PlmError(f"{self.path}: {fault}; petlm recover copies what is whole")
        payload = self._payload(int(entry["offset"]), int(entry["records"]))
        if payload is None:
            raise PlmError(f"{self.path}: block {index} cannot be decompressed; petlm recover copies what is whole")
        return payload.view(self.dtype)

    def verify(self) -> None:
        if self.missing:
            raise PlmError(str(self.missing[0]))
        faults = [fault for number in range(self.block_count) if (fault := self._block_fault(number))]
        if not faults and self._trailer is not None and self.payload_crc != value(self._trailer, "payload_crc"):
            faults.append("the CRC of the whole file in its trailer is wrong")
        if faults:
            told = "; ".join(faults[:_MOST_TOLD])
            more = f"; and {len(faults) - _MOST_TOLD} more" if len(faults) > _MOST_TOLD else ""
            raise PlmError(f"{self.path}: {told}{more}; petlm recover copies what is whole")

    def _described(self) -> dict[str, Any]:
        return self.description

    # Reading the parts of the file

    def _map(self) -> npt.NDArray[np.uint8]:
        with open(self.path, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise PlmError(f"{self.path}: not a regular file")
            if status.st_size == 0:
                raise PlmError(f"{self.path}: empty, not a list-mode file")
            return np.memmap(file, np.uint8, "r").view(np.ndarray)

    def _struct(self, kind: np.dtype[np.void], offset: int) -> Any:
        return self._bytes[offset : offset + kind.itemsize].view(kind)[0]

    @property
    def _compressed(self) -> bool:
        return value(self._header, "version") >= 2

    def _stored_bytes(self, at: int, records: int) -> int:
        """Of the records of the block at this offset."""
        size = records * self.dtype.itemsize
        return value(self._struct(BLOCK_HEADER, at), "stored_bytes") if self._compressed else size

    def _payload(self, at: int, records: int) -> npt.NDArray[np.uint8] | None:
        """The records of the block at this offset; None if they cannot be decompressed."""
        begin = at + BLOCK_HEADER.itemsize
        size = records * self.dtype.itemsize
        stored = self._bytes[begin : begin + self._stored_bytes(at, records)]
        if not self._compressed or value(self._struct(BLOCK_HEADER, at), "codec") == layout.PLAIN:
            return stored if len(stored) == size else None
        return decompress(stored, records, self.dtype.itemsize)

    def _sealed(self, offset: int, size: int) -> bool:
        stored = int.from_bytes(self._bytes[offset + size - 4 : offset + size].tobytes(), "little")
        return crc32c(self._bytes[offset : offset + size - 4]) == stored

    def _read_header(self) -> Any:
        size = len(self._bytes)
        if not layout.FILE_MAGIC.startswith(self._bytes[:8].tobytes()):
            raise PlmError(f'{self.path}: not a list-mode file: it does not begin with "PETACQLM"')
        cut = PlmError(f"{self.path}: list-mode file cut off inside its header")
        if size < FILE_HEADER.itemsize:
            raise cut
        header = self._struct(FILE_HEADER, 0)
        if value(header, "version") not in layout.VERSIONS:
            raise PlmError(f"{self.path}: list-mode version {header['version']}, expected version 1 to 3")
        if not self._sealed(0, FILE_HEADER.itemsize):
            raise PlmError(f"{self.path}: list-mode file with a damaged header: its CRC is wrong")
        header_bytes = value(header, "header_bytes")
        kind = KINDS.get(value(header, "kind"))
        if (
            kind is None
            or not self._possible(kind[1], value(header, "record_bytes"))
            or header_bytes % layout.HEADER_ALIGNMENT != 0
            or not layout.HEADER_ALIGNMENT <= header_bytes <= layout.MOST_HEADER_BYTES
            or not 128 <= value(header, "block_bytes") <= 1 << 30
            or value(header, "description_bytes") > header_bytes - FILE_HEADER.itemsize
        ):
            raise PlmError(f"{self.path}: list-mode header with impossible values")
        if size < header_bytes:
            raise cut
        return header

    @staticmethod
    def _possible(dtype: np.dtype[np.void] | None, record_bytes: int) -> bool:
        if dtype is None:
            return record_bytes > 0 and record_bytes % 64 == 0
        return record_bytes == dtype.itemsize

    def _described_type(self) -> np.dtype[np.void]:
        try:
            return layout.described_type(self.description.get("fields"), value(self._header, "record_bytes"))
        except PlmError as error:
            raise PlmError(f"{self.path}: {error}") from error

    def _read_description(self) -> dict[str, Any]:
        rest = self._bytes[FILE_HEADER.itemsize : value(self._header, "header_bytes")]
        if crc32c(rest) != value(self._header, "description_crc"):
            raise PlmError(f"{self.path}: list-mode file with a damaged header: the CRC of its description is wrong")
        try:
            description = json.loads(rest[: value(self._header, "description_bytes")].tobytes())
        except (ValueError, RecursionError) as error:
            raise PlmError(f"{self.path}: the description in the list-mode header is not JSON: {error}") from error
        if not isinstance(description, dict):
            raise PlmError(f"{self.path}: the description in the list-mode header is not a JSON object")
        return description

    def _read_place(self) -> tuple[int, int]:
        files = self.description.get("files")
        file = self.description.get("file")
        if type(files) is not int or type(file) is not int:
            return 0, 1
        if not 1 <= file <= files <= 16:
            raise PlmError(f"{self.path}: the description in the list-mode header names no file of a set")
        return file - 1, files

    def first_record(self, number: SupportsIndex) -> int:
        """The number, in the file or in its set, of the first record of a block."""
        entry = self._index[self._block_number(number)]
        return value(self._struct(BLOCK_HEADER, int(entry["offset"])), "first_record")

    def _read_index(self) -> npt.NDArray[np.void] | None:
        begin = value(self._header, "header_bytes")
        at = len(self._bytes) - TRAILER.itemsize
        if at < begin or self._bytes[at : at + 8].tobytes() != layout.TRAILER_MAGIC:
            return None
        if not self._sealed(at, TRAILER.itemsize):
            return None
        # A copy of the bytes, since the end of the file need not be aligned.
        trailer = np.frombuffer(self._bytes[at:].tobytes(), TRAILER)[0]
        offset, blocks = value(trailer, "index_offset"), value(trailer, "blocks")
        closing = at - (value(trailer, "closing_bytes") if value(self._header, "version") == 3 else 0)
        if not begin <= offset <= closing or (closing - offset) != blocks * INDEX_ENTRY.itemsize:
            return None
        index = np.frombuffer(self._bytes[offset:closing].tobytes(), INDEX_ENTRY)
        if crc32c(self._bytes[offset:closing]) != value(trailer, "index_crc"):
            return None
        if closing < at and not self._read_closing(self._bytes[closing:at], value(trailer, "closing_crc")):
            return None
        self._check_index(index, trailer)
        self._trailer = trailer
        return index

    def _read_closing(self, text: npt.NDArray[np.uint8], crc: int) -> bool:
        """What was known only when the file was closed. False if it is damaged."""
        try:
            said = json.loads(text.tobytes()) if crc32c(text) == crc else None
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict):
            return False
        self.description |= said
        return True

    def _check_index(self, index: npt.NDArray[np.void], trailer: Any) -> None:
        """The blocks must be consecutive, so that no view can reach outside its block."""
        sizes = index["records"].astype(np.uint64) * np.uint64(self.dtype.itemsize) + np.uint64(BLOCK_HEADER.itemsize)
        if self._compressed:
            sizes = self._sizes_of_stored(index, trailer, sizes)
        ends = np.uint64(value(self._header, "header_bytes")) + np.cumsum(sizes, dtype=np.uint64)
        starts = ends - sizes
        last_end = int(ends[-1]) if len(ends) else value(self._header, "header_bytes")
        times_ascend = np.all(index["first_time"] <= index["last_time"]) and np.all(
            index["last_time"][:-1] <= index["first_time"][1:]
        )
        if (
            not np.array_equal(starts, index["offset"])
            or last_end != value(trailer, "index_offset")
            or not np.all(index["records"])
            or int(index["records"].sum(dtype=np.uint64)) != value(trailer, "records")
            or not times_ascend
        ):
            raise PlmError(f"{self.path}: its index does not describe its blocks; petlm recover copies what is whole")

    def _sizes_of_stored(
        self, index: npt.NDArray[np.void], trailer: Any, most: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.uint64]:
        """The sizes of the blocks in the file, from their offsets. Zeros where these are impossible."""
        ends = np.append(index["offset"][1:], np.uint64(value(trailer, "index_offset")))[: len(index)]
        sizes: npt.NDArray[np.uint64] = ends - index["offset"]
        possible = (ends > index["offset"]) & (sizes > BLOCK_HEADER.itemsize) & (sizes <= most)
        if not np.all(possible):
            return np.zeros(len(index), np.uint64)
        return sizes

    def _walk(self) -> npt.NDArray[np.void]:
        """The whole blocks from the start of a file without an index."""
        entries: list[tuple[int, int, int, int, int]] = []
        at = value(self._header, "header_bytes")
        total = 0
        last_time = 0
        while not (why := self._fault_at(at, len(entries), total)):
            block = self._struct(BLOCK_HEADER, at)
            if value(block, "first_time") < last_time:
                why = f"block {len(entries)} begins before the one in front of it ends"
                break
            last_time = value(block, "last_time")
            records = value(block, "records")
            entries.append((at, records, value(block, "payload_crc"), value(block, "first_time"), last_time))
            at += BLOCK_HEADER.itemsize + self._stored_bytes(at, records)
            total += records
        left = len(self._bytes) - at
        self.missing = (Missing(self.path, at, left, f"the file was not closed properly: no index, {why}"),)
        return np.array(entries, INDEX_ENTRY)

    def _fault_at(self, at: int, index: int, first_record: int) -> str:
        """The defect of the block at this offset, of that index in the file; empty if it is whole."""
        if at == len(self._bytes):
            return f"the file ends behind {index} blocks"
        number = self.place + index * self.places
        head = self._bytes[at : at + BLOCK_HEADER.itemsize].tobytes()
        if len(head) < BLOCK_HEADER.itemsize:
            return f"block {number} is cut off"
        magic, found, records, record_bytes, first_time, last_time, first, payload_crc, stored, codec, seal = _BLOCK.unpack(head)
        if magic != layout.BLOCK_MAGIC:
            return f"no block {number} at offset {at}"
        if crc32c(head[:-4]) != seal:
            return f"the header of block {number} has a wrong CRC"
        most = (value(self._header, "block_bytes") - BLOCK_HEADER.itemsize) // self.dtype.itemsize
        size = records * record_bytes
        if not self._compressed:
            stored, codec = size, layout.PLAIN
        impossible = codec > layout.ZSTD or stored > size or (codec == layout.PLAIN and stored != size)
        if record_bytes != self.dtype.itemsize or not 1 <= records <= most or impossible:
            return f"the header of block {number} has impossible values"
        # In a set, the other files have records before.
        if found != number or (first < first_record if self.places > 1 else first != first_record):
            return f"block {found} is where block {number} was expected"
        if at + BLOCK_HEADER.itemsize + stored > len(self._bytes):
            return f"block {number} is cut off"
        payload = self._payload(at, records)
        if payload is None:
            return f"block {number} cannot be decompressed"
        if crc32c(payload) != payload_crc:
            return f"block {number} has a wrong CRC"
        time = payload.view(self.dtype)[self.time_field]
        if int(time[0]) != first_time or int(time[-1]) != last_time:
            return f"the times in the header of block {number} are not those of its records"
        return ""

    def _block_fault(self, number: int) -> str:
        entry = self._index[number]
        at = int(entry["offset"])
        fault = self._fault_at(at, number, self._start(number))
        if fault:
            return fault
        block = self._struct(BLOCK_HEADER, at)
        same = all(value(block, name) == int(entry[name]) for name in INDEX_ENTRY.names or () if name != "offset")
        return "" if same else f"the index and block {number} disagree"

    def _set_index(self, index: npt.NDArray[np.void]) -> None:
        self._index = index
        self._ends = np.cumsum(index["records"], dtype=np.uint64)
        self._first_time = np.ascontiguousarray(index["first_time"])
        self._last_time = np.ascontiguousarray(index["last_time"])
