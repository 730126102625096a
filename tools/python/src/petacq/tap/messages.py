"""The protocol of the tap: docs/reference/tap.md of petacqd."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from petacq.errors import TapError

_HEADER = struct.Struct("<8sIIQQQQQQ")
HEADER_BYTES = _HEADER.size
RUN_STARTED, RECORDS, RUN_ENDED = 1, 2, 3
LONGEST_LINE = 65536
_MAGIC = b"PETACQTP"
_VERSION = 1


class ConnectionEnded(TapError):
    """The daemon is gone, or has closed the connection."""


class Message(NamedTuple):
    """The header of a message."""

    kind: int
    payload_bytes: int
    run_number: int
    first_record: int
    records: int
    dropped: int


def message_of(header: bytes | bytearray, path: str) -> Message:
    """Raises TapError."""
    magic, kind, payload_bytes, number, first, records, _, _, dropped = _HEADER.unpack(header)
    if magic != _MAGIC:
        raise TapError(f"{path}: expected a message that begins with {_MAGIC!r}, found {magic!r}")
    return Message(kind, payload_bytes, number, first, records, dropped)


@dataclass(frozen=True)
class Answer:
    """What the daemon says before the first message."""

    description: dict[str, Any]
    kind: str
    prescale: int
    dtype: np.dtype[np.void]


def answer_of(line: bytes | bytearray, path: str) -> Answer:
    """Raises TapError with the reason if the daemon refuses, and for what is no answer."""
    if not line.endswith(b"\n"):
        raise ConnectionEnded(f"{path}: expected an answer, but the daemon closed it")
    try:
        answer = json.loads(line)
    except ValueError as error:
        raise TapError(f"{path}: expected a line of JSON, found {bytes(line[:40])!r}") from error
    if not isinstance(answer, dict):
        raise TapError(f"{path}: expected a JSON object, found {bytes(line[:40])!r}")
    if isinstance(answer.get("error"), str):
        raise TapError(f"{path}: {answer['error']}")
    if answer.get("format") != "petacqd tap" or answer.get("version") != _VERSION:
        raise TapError(
            f"{path}: expected version {_VERSION} of the petacqd tap, "
            f"found {answer.get('format')!r}, version {answer.get('version')!r}"
        )
    try:
        kind, prescale, record_bytes = answer["kind"], answer["prescale"], answer["record_bytes"]
        dtype: np.dtype[np.void] = np.dtype([(name, field) for name, field in answer["fields"]])
    except (KeyError, TypeError, ValueError) as error:
        raise TapError(f"{path}: expected a description of the records: {error!r}") from error
    if dtype.itemsize != record_bytes:
        raise TapError(f"{path}: expected records of {record_bytes} bytes, found {dtype}")
    return Answer(answer, kind, prescale, dtype)
