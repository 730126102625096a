"""The angle of a scanner that turns about its axis, as its position tags tell it (``rotation`` of its description)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from petacq.scanner.keys import Part

_TURN = 2 * np.pi


@dataclass(frozen=True)
class Rotation:
    tag_channel: int
    counts_per_turn: float  #: from +x to +y; negative: counts fall
    count_at_zero: float

    def angles(self, counts: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Radians from +x to +y, of counts in the order of time: from one to the next the short way around."""
        turns = (np.asarray(counts, np.float64) - self.count_at_zero) / self.counts_per_turn
        return np.unwrap(_TURN * (turns % 1))


def rotation_of(scanner: Any) -> Rotation | None:
    """Of a scanner description; None: it stands still."""
    description = getattr(scanner, "description", None)
    if description is None or not Part(description, "").has("rotation"):
        return None
    part = Part(description, "").part("rotation")
    channel = part.count("tag_channel", least=0, most=15)
    return Rotation(channel, part.number("counts_per_turn"), part.number("count_at_zero", 0))
