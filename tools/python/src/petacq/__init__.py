"""Reads the runs of petacqd: list-mode as NumPy arrays without copying, rates, metadata, scanner, calibration; and watches
and controls a petacqd that is running.

>>> import petacq
>>> run = petacq.open_run("data/first")
>>> for block in run.coincidences.blocks():
...     print(block["energy_a"].mean())
"""

from petacq import histograms
from petacq.arrow.parquet import read_parquet
from petacq.calibration import Calibration
from petacq.capture import FRAME, FRAME_2, Frames, frame_blocks, read_frames
from petacq.coverage import Coverage
from petacq.daemon import Daemon
from petacq.dataset import Dataset
from petacq.errors import (
    CalibrationError,
    CaptureError,
    CoverageError,
    DaemonError,
    DaemonTimeoutError,
    IncompleteWarning,
    PetacqError,
    PlmError,
    RefusedError,
    RunError,
    ScannerError,
    TapError,
    UnknownWarning,
)
from petacq.image import Image, open_image
from petacq.layout import (
    CLOCK,
    COINCIDENCE,
    COINCIDENT,
    DEAD_TIME,
    DELAYED,
    GATE,
    POSITION,
    PROMPT,
    SINGLE,
    TAG,
    TRIGGER,
    TRIPLE,
)
from petacq.plm import Missing, PlmFile
from petacq.plm_files import PlmFiles, PlmSet
from petacq.rates import RunRates
from petacq.run import Run, open_run
from petacq.run_list import ListedRun, list_runs
from petacq.scanner import Scanner
from petacq.series.bids import write_bids
from petacq.series.dicom import write_dicom
from petacq.tap import Tap, tap

__version__ = "1.0.0"

__all__ = [
    "CLOCK",
    "COINCIDENCE",
    "COINCIDENT",
    "DEAD_TIME",
    "DELAYED",
    "FRAME",
    "FRAME_2",
    "GATE",
    "POSITION",
    "PROMPT",
    "SINGLE",
    "TAG",
    "TRIGGER",
    "TRIPLE",
    "Calibration",
    "CalibrationError",
    "CaptureError",
    "Coverage",
    "CoverageError",
    "Daemon",
    "DaemonError",
    "DaemonTimeoutError",
    "Dataset",
    "Frames",
    "Image",
    "IncompleteWarning",
    "ListedRun",
    "Missing",
    "PetacqError",
    "PlmError",
    "PlmFile",
    "PlmFiles",
    "PlmSet",
    "RefusedError",
    "Run",
    "RunError",
    "RunRates",
    "Scanner",
    "ScannerError",
    "Tap",
    "TapError",
    "UnknownWarning",
    "frame_blocks",
    "histograms",
    "list_runs",
    "open_image",
    "open_run",
    "read_frames",
    "read_parquet",
    "tap",
    "write_bids",
    "write_dicom",
]
