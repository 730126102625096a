"""Delayed pairs of other software, whose times may still have the delay."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from petacq.errors import PetacqError

_ENOUGH = 100  #: pairs that tell the width of their window


class Delayeds:
    """Takes the delay out of the times of pairs, as list-mode has them, and finds out whether there still is one."""

    def __init__(self, path: str, delay_ns: float, ns: float, prompts_apart: float | None) -> None:
        """``ns``: of the unit of all times. ``prompts_apart``: the longest time between the photons of a prompt; None: not known."""
        self._path, self._delay, self._ns, self._prompts_apart = path, delay_ns / ns, ns, prompts_apart
        self._count, self._least, self._most = 0, math.inf, 0.0

    def without_delay(self, times: tuple[Any, Any]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """The times of both photons; the later one came earlier by the delay."""
        a, b = (np.asarray(of, np.float64) for of in times)
        b_is_later = b >= a
        a, b = np.where(b_is_later, a, a - self._delay), np.where(b_is_later, b - self._delay, b)
        apart = np.abs(b - a)
        self._count += len(apart)
        self._least, self._most = min(self._least, apart.min(initial=math.inf)), max(self._most, apart.max(initial=0.0))
        return a, b

    def check(self) -> None:
        """After the last pair. Without a delay, times between the photons begin near 0, as those of prompts do."""
        if self._prompts_apart is None and self._count < _ENOUGH:
            return
        # A few prompts may be nearer to each other than their window is wide.
        window = max(self._prompts_apart or 0.0, self._most - self._least)
        if self._count and self._least > window:
            apart = f"the photons of its delayeds are {self._least * self._ns:.6g} to {self._most * self._ns:.6g} ns apart"
            without = f" without the {self._delay * self._ns:g} ns of --delay-ns" if self._delay else ""
            prompts = "" if self._prompts_apart is None else f", those of its prompts at most {self._prompts_apart * self._ns:.6g} ns"
            raise PetacqError(f"{self._path}: {apart}{without}{prompts}; expected --delay-ns with the delay of their window")
