"""CRC-32C (Castagnoli), as list-mode files use it.

The packages ``google-crc32c`` or ``crc32c`` are used when one is installed. Otherwise NumPy does it: long data are
folded over themselves many words at a time, and of what remains a table tells what each byte at each place does.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint32]
Bytes = npt.NDArray[np.uint8]

_POLYNOMIAL = 0x82F63B78
_WIDTHS = (16384, 1024)  # words to which long data are folded, one after the other
_PLACES = 4 * 1024 + 3  # bytes: of the last width, and those that are no word


def _byte_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _byte_table()


def _plain(register: int, data: bytes) -> int:
    for byte in data:
        register = (register >> 8) ^ _TABLE[(register ^ byte) & 0xFF]
    return register


@cache
def _step(power: int) -> list[int]:
    """The effect of 2**power zero bytes on each bit of a register. The map is linear, so these define it."""
    if power == 0:
        return [_plain(1 << bit, b"\0") for bit in range(32)]
    half = _step(power - 1)
    return [_apply(half, column) for column in half]


def _advance(register: int, zero_bytes: int) -> int:
    """The register after that many zero bytes."""
    for power in range(zero_bytes.bit_length()):
        if zero_bytes >> power & 1:
            register = _apply(_step(power), register)
    return register


@cache
def _advance_tables(zero_bytes: int) -> tuple[Words, Words]:
    """The same map for the low and the high 16 bits of a register, to be combined by xor."""
    columns = [_advance(1 << bit, zero_bytes) for bit in range(32)]
    low = np.zeros(1 << 16, np.uint32)
    high = np.zeros(1 << 16, np.uint32)
    for bit in range(16):
        low[1 << bit : 2 << bit] = low[: 1 << bit] ^ np.uint32(columns[bit])
        high[1 << bit : 2 << bit] = high[: 1 << bit] ^ np.uint32(columns[bit + 16])
    return low, high


def _apply(columns: list[int], value: int) -> int:
    result = 0
    for column in columns:
        if value & 1:
            result ^= column
        value >>= 1
    return result


def _fold(words: Words, width: int) -> Words:
    """``width`` words that have the same CRC, started with 0, as all of ``words``."""
    low, high = _advance_tables(4 * width)
    first = (len(words) - 1) % width + 1
    folded = np.zeros(width, np.uint32)
    folded[width - first :] = words[:first]  # zeros in front do not change a CRC that is started with 0
    other = np.empty(width, np.uint32)
    half = np.empty(width, np.intp)  # take() would copy any other kind of index
    for at in range(first, len(words), width):
        np.right_shift(folded, 16, out=half, casting="unsafe")
        high.take(half, out=other, mode="clip")
        np.bitwise_and(folded, 0xFFFF, out=half, casting="unsafe")
        low.take(half, out=folded, mode="clip")
        folded ^= other
        folded ^= words[at : at + width]
    return folded


@cache
def _places() -> tuple[Words, npt.NDArray[np.intp]]:
    """[place * 256 + value] What a byte does to a CRC that is started with 0, if so many bytes follow it. Second: the
    rows of the bytes of the longest data, in their order."""
    table = np.empty((_PLACES, 256), np.uint32)
    step = table[0] = np.array(_TABLE, np.uint32)
    for place in range(1, _PLACES):
        table[place] = table[place - 1] >> 8 ^ step[table[place - 1] & 0xFF]
    return table.ravel(), np.arange(_PLACES - 1, -1, -1) * 256


def _folding(data: Bytes) -> int:
    """The CRC by NumPy alone."""
    if len(data) < 50:  # NumPy would take longer
        return _plain(0xFFFFFFFF, data.tobytes()) ^ 0xFFFFFFFF
    data = data.copy()
    data[:4] ^= 0xFF  # the start value, moved into the data
    whole = len(data) // 4 * 4
    words = data[:whole].view(np.uint32)
    for width in _WIDTHS:
        if len(words) > width:
            words = _fold(words, width)
    table, rows = _places()
    at = rows[-(4 * len(words) + len(data) - whole) :].copy()
    at[: 4 * len(words)] += words.view(np.uint8)
    at[4 * len(words) :] += data[whole:]
    return int(np.bitwise_xor.reduce(table.take(at, mode="clip"))) ^ 0xFFFFFFFF


def _by_package() -> Callable[[Bytes], int] | None:
    for name, function in (("google_crc32c", "value"), ("crc32c", "crc32c")):
        try:
            module: Any = importlib.import_module(name)
            compute: Callable[[bytes], int] = getattr(module, function)
            if compute(b"123456789") == 0xE3069283:
                return lambda data: compute(data.tobytes())
        except (ImportError, AttributeError):
            continue
    return None


_package = _by_package()


def crc32c(data: bytes | memoryview | npt.NDArray[Any]) -> int:
    """CRC-32C of the bytes of ``data`` (an array: contiguous)."""
    flat: Bytes = np.frombuffer(data, np.uint8) if len(data) else np.zeros(0, np.uint8)
    return _folding(flat) if _package is None else _package(flat)


def crc32c_combine(first: int, second: int, second_bytes: int) -> int:
    """CRC-32C of two stretches of data, one after the other, from the CRC-32C of each."""
    return _advance(first, second_bytes) ^ second
