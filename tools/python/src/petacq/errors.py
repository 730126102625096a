"""The errors: one class for each kind of file, all derived from PetacqError."""

from __future__ import annotations


class PetacqError(Exception):
    """The message names the file, what was expected and what was found."""


class PlmError(PetacqError):
    """Not a list-mode file, or one that is damaged."""


class RunError(PetacqError):
    """A directory that is not a run, or a part of a run that is missing or unreadable."""


class CoverageError(PetacqError):
    """The coverage of a file is none, or parts do not belong together."""


class ScannerError(PetacqError):
    """An invalid scanner description."""


class CalibrationError(PetacqError):
    """A calibration that does not fit the scanner, or is not the one of the run."""


class CaptureError(PetacqError):
    """Not a raw capture that petacqd or petsim wrote, or one that is damaged."""


class DaemonError(PetacqError):
    """petacqd cannot be reached, went away, or answered something that is no answer."""


class DaemonTimeoutError(DaemonError, TimeoutError):
    """petacqd did not answer in time. What was asked for may still happen."""


class RefusedError(DaemonError):
    """petacqd answered with a reason why it does not do what was asked for: that is the message."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        #: As docs/reference/control.md lists them: -32000 not possible now or not allowed, -32602 wrong parameters, ...
        self.code = code


class TapError(PetacqError):
    """The live tap refuses a request, or the connection to it is broken."""


class UnknownWarning(UserWarning):
    """A file of petacqd 1.0, or one that was imported, does not say all that a file covers."""


class IncompleteWarning(UserWarning):
    """A list-mode file or a capture was not closed properly, or a file of a run is missing: there were more records."""
