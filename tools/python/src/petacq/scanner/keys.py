"""Reads the values of a scanner description. Each error names the key and says what was expected."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from petacq.errors import ScannerError


class Part:
    """An object of the description, and where it is. A key that is null is as one left out."""

    def __init__(self, value: Any, path: str) -> None:
        if not isinstance(value, Mapping):
            raise ScannerError(f"{path or 'scanner'}: expected an object, found {value!r}")
        self._value, self.path = value, path

    def has(self, key: str) -> bool:
        return self._value.get(key) is not None

    def part(self, key: str) -> Part:
        """Empty if it is left out."""
        return Part(self._value[key] if self.has(key) else {}, f"{self.path}/{key}")

    def number(self, key: str, default: float | None = None) -> float:
        value = self._value[key] if self.has(key) else default
        return finite(value, f"{self.path}/{key}")

    def count(self, key: str, default: int | None = None, least: int = 1, most: int = 1 << 28) -> int:
        value = self._value[key] if self.has(key) else default
        return whole(value, f"{self.path}/{key}", least, most)

    def text(self, key: str, default: str | None = None) -> str:
        value = self._value[key] if self.has(key) else default
        if not isinstance(value, str):
            raise ScannerError(f"{self.path}/{key}: expected a string, found {value!r}")
        return value

    def items(self, key: str) -> list[Any]:
        """Empty if they are left out."""
        return list_of(self._value[key] if self.has(key) else [], f"{self.path}/{key}")

    def parts(self, key: str) -> list[Part]:
        return [Part(item, f"{self.path}/{key}/{i}") for i, item in enumerate(self.items(key))]


def list_of(value: Any, path: str) -> list[Any]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise ScannerError(f"{path}: expected an array, found {value!r}")
    return list(value)


def finite(value: Any, path: str) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value):
        raise ScannerError(f"{path}: expected a number, found {value!r}")
    return float(value)


def whole(value: Any, path: str, least: int, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ScannerError(f"{path}: expected an integer from {least} to {most}, found {value!r}")
    return value
