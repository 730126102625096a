"""The bytes of the events of a PETSIRD file. Unsigned numbers are written 7 bits at a time, the low ones first; the high bit
says that more follow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from petacq.errors import PetacqError
from petacq.petsird_events import NO_EVENTS, Bins, Events, Rows
from petacq.scanner.arrangement import Integers


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _varints(largest: int) -> tuple[npt.NDArray[np.uint32], Integers]:
    """Of each number from 0 to the largest: its bytes, followed by zeros up to four; how many they are."""
    if largest >= 1 << 28:
        raise PetacqError(f"{largest + 1} detection bins: expected at most {1 << 28}")
    places = np.arange(4)
    left = np.arange(largest + 1)[:, None] >> (7 * places)
    padded = (left & 0x7F | np.where(left > 0x7F, 0x80, 0)).astype(np.uint8)
    return padded.view(np.uint32).ravel(), 1 + np.count_nonzero(left[:, 1:], axis=1)


class EventBytes:
    """Cuts rows into the bytes of their events: those of their numbers one after the other, a detection bin for each photon,
    then the TOF bins."""

    def __init__(self, bins: Bins) -> None:
        self._detection_bin = _varints(len(bins.element) * bins.energies - 1)
        self._tof_bin = _varints(2 * bins.tof_half)

    def __call__(self, rows: Rows, begin: Integers, end: Integers) -> Sequence[Any]:
        numbers, count = rows.shape
        columns = numbers // 2 * [self._detection_bin] + [self._detection_bin] + numbers // 2 * [self._tof_bin]
        padded = np.empty((count, numbers), np.uint32)
        edges = np.zeros(count + 1, np.int64)
        for column, (number, (four, length)) in enumerate(zip(rows, columns)):
            padded[:, column] = four.take(number)
            edges[1:] += length.take(number)
        places = padded.view(np.uint8)
        used = places != 0
        used[:, ::4] = True  # only the first byte of a number can be 0
        packed = np.compress(used.ravel(), places.ravel()).data  # several times faster than places[used]
        np.cumsum(edges, out=edges)
        return [packed[low:high] for low, high in zip(edges.take(begin).tolist(), edges.take(end).tolist())]


class EventBlocks:
    """Makes the time blocks of events of a file: stream items, of the six types of time blocks the first. Lists of events are
    in tables by the types of modules of their photons, of which none is higher than the one before it; in 0.9.1 the tables
    have places for all others, too. There are no lists of single photons, and none of groups of four."""

    def __init__(self, bins: Bins, delayeds: bool, triangular: bool) -> None:
        """``delayeds``: the file has lists of delayeds. ``triangular``: tables have no places that stay empty."""
        self._types = len(bins.first_element)
        self._delayeds = delayeds
        self._triples = bins.gamma_energy is not None
        self._triangular = triangular

    def __call__(
        self, begin_ms: int, end_ms: int, prompts: Sequence[Events], delayeds: Sequence[Events], triples: Sequence[Events]
    ) -> list[Any]:
        out = [b"\x01\x00" + varint(begin_ms) + varint(end_ms) + b"\x00", *self._table(iter(prompts), 2)]
        out += self._table(iter(delayeds), 2) if self._delayeds else [b"\x00"]
        out += self._table(iter(triples), 3) if self._triples else [b"\x00"]
        return [*out, b"\x00"]

    def empty(self, at_ms: int) -> list[Any]:
        """A block without time and events."""
        none = [NO_EVENTS] * self._types**3
        return self(at_ms, at_ms, none, none, none)

    def _table(self, lists: Iterator[Events], photons: int, highest: int | None = None) -> list[Any]:
        """``highest``: the last type of which there are events; none if it is negative, all by default."""
        if highest is None:
            highest = self._types - 1
        size = highest + 1 if self._triangular else self._types
        out: list[Any] = [varint(size)]
        for of_type in range(size):
            if photons > 1:
                out += self._table(lists, photons - 1, of_type if of_type <= highest else -1)
            else:
                events = next(lists) if of_type <= highest else NO_EVENTS
                out += [varint(events.count), *events.pieces]
        return out
