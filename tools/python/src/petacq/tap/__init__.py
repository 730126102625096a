"""The live tap: a sample of the records of the run in progress, as NumPy arrays."""

from petacq.tap.tap import Tap, tap

__all__ = ["Tap", "tap"]
