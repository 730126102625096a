"""Waits for what a program does in its own time."""

import time

PATIENCE_S = 60


def eventually(condition, not_yet=()):
    """The first value of `condition()` that is true. Exceptions of the types `not_yet` say that it is not there yet. Raises TimeoutError
    with the last value or exception."""
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            value = condition()
        except not_yet as error:
            value = error
        else:
            if value:
                return value
        if time.monotonic() > end:
            raise TimeoutError(f"last: {value}")
        time.sleep(0.02)
