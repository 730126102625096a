"""What goes wrong: one class for each kind of file, all of them PetacqError."""

from __future__ import annotations


class PetacqError(Exception):
    """Says which file, what was expected and what was found."""


class PlmError(PetacqError):
    """Not a list-mode file, or one that is damaged."""


class RunError(PetacqError):
    """A directory that is no run, or a part of a run that is not there or cannot be read."""


class ScannerError(PetacqError):
    """A scanner description that cannot be."""


class CalibrationError(PetacqError):
    """A calibration that does not fit the scanner, or is not the one of the run."""


class IncompleteWarning(UserWarning):
    """A list-mode file was not closed properly, or a file of a run is missing: there were more records."""
