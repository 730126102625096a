"""Raw captures: the frames of ``raw.pcap`` as arrays (docs/reference/wire-format.md of petacqd)."""

from __future__ import annotations

import mmap
import os
import struct
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from petacq.errors import CaptureError, IncompleteWarning

#: A frame of version 1 on the wire: 16 bytes.
FRAME = np.dtype(
    [
        ("head_du", "u1"),
        ("bdm", "u1"),
        ("time", ">u8"),
        ("x", "u1"),
        ("y", "u1"),
        ("adc", ">u2"),
        ("degrees", "i1"),
        ("sixteenths_tail", "u1"),
    ]
)

#: A frame of version 2, which names more BDMs; also 16 bytes.
FRAME_2 = np.dtype(
    [
        ("bdm", ">u2"),
        ("time", ">u8"),
        ("x", "u1"),
        ("y", "u1"),
        ("adc", ">u2"),
        ("degrees", "i1"),
        ("head_du", "u1"),
    ]
)

_FILE_HEADER = struct.Struct("<IHHiIII")
_LENGTHS = struct.Struct("<8xII")
_RECORD_HEADER = 16
_HEADER = 16
_MAGIC_NANOSECONDS = 0xA1B23C4D
_MAGIC_MICROSECONDS = 0xA1B2C3D4
_RAW_IPV4 = 101
_UDP_PAYLOAD = 28  # behind an IPv4 header without options and a UDP header
_UDP_OVER_IPV4 = 17


@dataclass(frozen=True)
class Frames:
    """Frames with valid markers, in the order of the file; tag frames are not among them. Addresses may be out of the
    range of the scanner."""

    #: The frames as they were sent; the arrays below are views of it where the byte order allows.
    raw: npt.NDArray[np.void]

    def __len__(self) -> int:
        return len(self.raw)

    @property
    def bdm(self) -> npt.NDArray[np.unsignedinteger[Any]]:
        """BDM: u8; u16 of frames of version 2."""
        return np.asarray(self.raw["bdm"].astype(self.raw.dtype["bdm"].newbyteorder("=")))

    @property
    def du(self) -> npt.NDArray[np.uint8]:
        """DU of the BDM."""
        return np.asarray(self.raw["head_du"] & 0xF)

    @property
    def x(self) -> npt.NDArray[np.uint8]:
        """Place in the block, in steps of the position table."""
        return np.asarray(self.raw["x"])

    @property
    def y(self) -> npt.NDArray[np.uint8]:
        """Place in the block, in steps of the position table."""
        return np.asarray(self.raw["y"])

    @property
    def adc(self) -> npt.NDArray[np.uint16]:
        """Energy, ADC counts."""
        return np.asarray(self.raw["adc"].astype(np.uint16))

    @property
    def time(self) -> npt.NDArray[np.uint64]:
        """Ticks, without the time offsets of the calibration."""
        return np.asarray(self.raw["time"].astype(np.uint64))

    @property
    def temperature(self) -> npt.NDArray[np.float32]:
        """Degrees C; of frames of version 2 whole ones."""
        if "sixteenths_tail" not in (self.raw.dtype.names or ()):
            return np.asarray(self.raw["degrees"], np.float32)
        return np.asarray(self.raw["degrees"] + (self.raw["sixteenths_tail"] >> 4) * np.float32(1 / 16), np.float32)


def read_frames(
    path: str | os.PathLike[str],
    framing: str = "sequenced",
    head_marker: int = 0xA,
    tail_marker: int = 0x5,
    frame_version: int = 1,
) -> Frames:
    """All frames of a capture that petacqd or petsim wrote. ``frame_version``: that of the scanner; version 2 has no
    tail marker. Needs memory for 16 bytes for each frame, twice; for a larger capture use frame_blocks(). Raises
    CaptureError for another file, OSError if it cannot be opened; warns of a file that ends within a packet."""
    blocks = [block.raw for block in frame_blocks(path, framing, head_marker, tail_marker, frame_version=frame_version)]
    return Frames(np.concatenate(blocks) if blocks else np.empty(0, _frame_type(frame_version)))


def frame_blocks(
    path: str | os.PathLike[str],
    framing: str = "sequenced",
    head_marker: int = 0xA,
    tail_marker: int = 0x5,
    block_frames: int = 1 << 20,
    frame_version: int = 1,
) -> Iterator[Frames]:
    """The same in blocks of about ``block_frames`` frames.

    Datagrams appear as they were received: also duplicates, and in the order of their arrival. Malformed datagrams
    are left out."""
    if framing not in ("sequenced", "bare"):
        raise ValueError(f'framing: expected "sequenced" or "bare", found {framing!r}')
    frame = _frame_type(frame_version)
    beginning = b"PETF" + bytes([frame_version])
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        _check_header(Path(path), file.read(_FILE_HEADER.size))
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            waiting: list[bytes] = []
            frames = 0
            for start, end in _payloads(Path(path), data, size):
                if framing == "sequenced":
                    if data[start : start + 5] != beginning:
                        continue
                    start += _HEADER
                if (end - start) % FRAME.itemsize or start >= end:
                    continue
                waiting.append(data[start:end])
                frames += (end - start) // FRAME.itemsize
                if frames >= block_frames:
                    yield _frames(waiting, frame, head_marker, tail_marker)
                    waiting, frames = [], 0
            if waiting:
                yield _frames(waiting, frame, head_marker, tail_marker)


def _frame_type(frame_version: int) -> np.dtype[np.void]:
    if frame_version not in (1, 2):
        raise ValueError(f"frame_version: expected 1 or 2, found {frame_version!r}")
    return FRAME if frame_version == 1 else FRAME_2


def _frames(datagrams: list[bytes], frame: np.dtype[np.void], head_marker: int, tail_marker: int) -> Frames:
    raw = np.frombuffer(b"".join(datagrams), frame)
    hits = raw["head_du"] >> 4 == head_marker
    if frame == FRAME:
        hits &= raw["sixteenths_tail"] & 0xF == tail_marker
    return Frames(raw if hits.all() else raw[hits])


def _check_header(path: Path, header: bytes) -> None:
    if len(header) < _FILE_HEADER.size:
        raise CaptureError(f"{path}: expected a pcap file, found {len(header)} bytes")
    magic, *_, link = _FILE_HEADER.unpack(header)
    if magic not in (_MAGIC_NANOSECONDS, _MAGIC_MICROSECONDS):
        raise CaptureError(f"{path}: not a pcap file in the byte order of this machine")
    if link != _RAW_IPV4:
        raise CaptureError(
            f"{path}: link type {link}: expected {_RAW_IPV4} (raw IPv4), as petacqd and petsim write it; "
            "replay others with petacqd and listmode.write_raw"
        )


def _payloads(path: Path, data: Any, size: int) -> Iterator[tuple[int, int]]:
    """Where the payload of each UDP datagram starts and ends."""
    at = _FILE_HEADER.size
    unpack = _LENGTHS.unpack_from
    while at < size:
        if at + _RECORD_HEADER > size:
            return _cut(path, at)
        captured, length = unpack(data, at)
        start = at + _RECORD_HEADER
        at = start + captured
        if at > size:
            return _cut(path, start - _RECORD_HEADER)
        if captured != length:
            raise CaptureError(f"{path}: byte {start}: {captured} bytes of a packet of {length}: expected whole packets")
        if captured < _UDP_PAYLOAD or data[start] != 0x45 or data[start + 9] != _UDP_OVER_IPV4:
            raise CaptureError(f"{path}: byte {start}: expected a UDP datagram over IPv4 without options")
        yield start + _UDP_PAYLOAD, at


def _cut(path: Path, at: int) -> None:
    warnings.warn(f"{path}: ends within the packet at byte {at}", IncompleteWarning, stacklevel=4)
