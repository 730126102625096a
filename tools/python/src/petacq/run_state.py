"""The state of a run."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def state_of(folder: Path, state: str) -> str:
    """The state in ``run.json``, but "interrupted" for a run that says "running" and that nobody writes: its daemon was
    killed."""
    return "interrupted" if state == "running" and not _is_being_written(folder) else state


def _is_being_written(folder: Path) -> bool:
    """The daemon has locked the file .reserve of the run that it writes (daemon/run/reserve.hpp)."""
    if sys.platform == "win32":  # no flock
        return True
    import fcntl

    try:
        descriptor = os.open(folder / ".reserve", os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        return isinstance(error, PermissionError)  # another user's: who knows
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False
