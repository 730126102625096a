"""Errors of the packages that read files of other software. Each has many kinds of them, for damaged files, too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from petacq.errors import PetacqError

_Piece = TypeVar("_Piece")


@contextmanager
def sound(expected: str) -> Iterator[None]:
    """Raises PetacqError, which begins with ``expected``, for every other error inside."""
    try:
        yield
    except PetacqError:
        raise
    except Exception as error:
        raise PetacqError(f"{expected}: {error}") from error


def each_sound(pieces: Iterable[_Piece], expected: str) -> Iterator[_Piece]:
    """The pieces, likewise; not for what is done with them."""
    rest = iter(pieces)
    while True:
        with sound(expected):
            try:
                piece = next(rest)
            except StopIteration:
                return
        yield piece
