"""The bytes of a list-mode file, as docs/reference/list-mode-format.md of petacqd describes them."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from petacq.errors import PlmError

if sys.byteorder != "little":  # records are views of the file
    raise ImportError("petacq: list-mode files are little-endian, and so must be the machine that reads them")

Records = npt.NDArray[np.void]

PROMPT = 0
DELAYED = 1

#: One coincidence. Times in ticks, energies in keV; a is the earlier single.
COINCIDENCE = np.dtype(
    [
        ("time", "<u8"),
        ("dt", "<u4"),
        ("crystal_a", "<u4"),
        ("crystal_b", "<u4"),
        ("energy_a", "<f4"),
        ("energy_b", "<f4"),
        ("kind", "<u4"),
    ]
)
#: One single. Time in ticks, energy in keV.
SINGLE = np.dtype([("time", "<u8"), ("crystal", "<u4"), ("energy", "<f4")])

COINCIDENT = 0

#: A pair and a gamma near it in time: the fields of the pair, then those of the gamma. gamma_dt: ticks after the earlier
#: single of the pair, less the delay of a delayed gamma; third: COINCIDENT or DELAYED.
TRIPLE = np.dtype(
    [
        *((name, COINCIDENCE[name]) for name in COINCIDENCE.names or ()),
        ("gamma_dt", "<i4"),
        ("gamma_crystal", "<u4"),
        ("gamma_energy", "<f4"),
        ("third", "<u4"),
    ]
)

#: One tag: a mark in detector time that is no hit. Time in ticks; kind: TRIGGER and so on, or another number. The value
#: of a position is a signed number of micrometres: ``tags["value"].view("<i4")`` of a contiguous copy.
TAG = np.dtype([("time", "<u8"), ("value", "<u4"), ("source", "<u2"), ("channel", "u1"), ("kind", "u1")])
TRIGGER, GATE, POSITION, DEAD_TIME, CLOCK = range(5)

#: Of kinds whose type is None, each file describes its records.
KINDS: dict[int, tuple[str, np.dtype[np.void] | None]] = {
    1: ("coincidences", COINCIDENCE),
    2: ("singles", SINGLE),
    3: ("tags", TAG),
    4: ("seconds", None),
    5: ("triples", TRIPLE),
}

FILE_MAGIC = b"PETACQLM"
BLOCK_MAGIC = b"PLMBLOCK"
TRAILER_MAGIC = b"PLMTRAIL"
VERSIONS = (1, 2, 3)  # from 2 on, blocks may be compressed; 3: a closing description
PLAIN, ZSTD = 0, 1
HEADER_ALIGNMENT = 4096
MOST_HEADER_BYTES = 64 << 20

FILE_HEADER = np.dtype(
    [
        ("magic", "S8"),
        ("version", "<u4"),
        ("header_bytes", "<u4"),
        ("kind", "<u4"),
        ("record_bytes", "<u4"),
        ("block_bytes", "<u4"),
        ("description_bytes", "<u4"),
        ("description_crc", "<u4"),
        ("header_crc", "<u4"),
    ]
)
BLOCK_HEADER = np.dtype(
    [
        ("magic", "S8"),
        ("number", "<u8"),
        ("records", "<u4"),
        ("record_bytes", "<u4"),
        ("first_time", "<u8"),
        ("last_time", "<u8"),
        ("first_record", "<u8"),
        ("payload_crc", "<u4"),
        ("stored_bytes", "<u4"),
        ("codec", "<u4"),
        ("header_crc", "<u4"),
    ]
)
INDEX_ENTRY = np.dtype(
    [("offset", "<u8"), ("records", "<u4"), ("payload_crc", "<u4"), ("first_time", "<u8"), ("last_time", "<u8")]
)
TRAILER = np.dtype(
    [
        ("magic", "S8"),
        ("index_offset", "<u8"),
        ("blocks", "<u8"),
        ("records", "<u8"),
        ("index_crc", "<u4"),
        ("payload_crc", "<u4"),
        ("closing_bytes", "<u4"),
        ("closing_crc", "<u4"),
        ("reserved", "<u4", 3),
        ("trailer_crc", "<u4"),
    ]
)
assert (FILE_HEADER.itemsize, BLOCK_HEADER.itemsize, INDEX_ENTRY.itemsize, TRAILER.itemsize) == (40, 64, 32, 64)


def value(header: Any, field: str) -> int:
    """A number of a header, as a Python integer: those of NumPy wrap around."""
    return int(header[field])


def described_type(fields: Any, record_bytes: int) -> np.dtype[np.void]:
    """The type of records as the header of their file describes them, without fields of types that are not known here.
    Raises PlmError if they do not fit."""
    try:
        known = [field for field in fields if field["type"] in ("<u4", "<u8", "<i8", "<f4", "<f8")]
        names = [str(field["name"]) for field in known]
        formats = [(field["type"], tuple(map(int, field["shape"]))) for field in known]
        offsets = [int(field["offset"]) for field in known]
        first = np.dtype(formats[0])
        if offsets[0] != 0 or first != np.dtype("<u8"):
            raise ValueError("the first field is no time")
        return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": record_bytes})
    except (TypeError, ValueError, KeyError, IndexError, OverflowError) as error:
        raise PlmError(f"the fields in its header describe no record: {error!r}") from error


def field_type(records: np.dtype[np.void], name: str) -> np.dtype[Any]:
    """The type of one column. Raises PlmError for an unknown column."""
    if records.fields is None or name not in records.fields:
        raise PlmError(f"no column {name!r}: there are {', '.join(records.names or ())}")
    kind: np.dtype[Any] = records.fields[name][0]
    return kind


def fields_type(records: np.dtype[np.void], names: list[str]) -> np.dtype[np.void]:
    """The type of records with these columns only. Raises PlmError for an unknown column and for one that is named twice."""
    if len(set(names)) != len(names):
        raise PlmError(f"a column is named twice: {', '.join(names)}")
    return np.dtype([(name, field_type(records, name)) for name in names])
