"""Waits for what a program does in its own time."""

import time

PATIENCE_S = 60


def eventually(condition):
    """The first value of `condition()` that is true. Raises TimeoutError with the last one."""
    end = time.monotonic() + PATIENCE_S
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise TimeoutError(f"last: {value}")
        time.sleep(0.02)
