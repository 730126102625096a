"""Reads the runs of petacqd: list-mode as NumPy arrays without copying, metadata, scanner, calibration.

>>> import petacq
>>> run = petacq.open_run("data/first")
>>> for block in run.coincidences.blocks():
...     print(block["energy_a"].mean())
"""

from petacq.calibration import Calibration
from petacq.capture import FRAME, Frames, frame_blocks, read_frames
from petacq.errors import (
    CalibrationError,
    CaptureError,
    IncompleteWarning,
    PetacqError,
    PlmError,
    RunError,
    ScannerError,
)
from petacq.layout import (
    CLOCK,
    COINCIDENCE,
    DEAD_TIME,
    DELAYED,
    GATE,
    POSITION,
    PROMPT,
    SINGLE,
    TAG,
    TRIGGER,
)
from petacq.plm import Missing, PlmFile
from petacq.plm_files import PlmFiles, PlmSet
from petacq.run import Run, open_run
from petacq.scanner import Scanner

__version__ = "1.0.0"

__all__ = [
    "CLOCK",
    "COINCIDENCE",
    "DEAD_TIME",
    "DELAYED",
    "FRAME",
    "GATE",
    "POSITION",
    "PROMPT",
    "SINGLE",
    "TAG",
    "TRIGGER",
    "Calibration",
    "CalibrationError",
    "CaptureError",
    "Frames",
    "IncompleteWarning",
    "Missing",
    "PetacqError",
    "PlmError",
    "PlmFile",
    "PlmFiles",
    "PlmSet",
    "Run",
    "RunError",
    "Scanner",
    "ScannerError",
    "frame_blocks",
    "open_run",
    "read_frames",
]
