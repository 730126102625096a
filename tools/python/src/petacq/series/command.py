"""The command lines of ``petacq-bids`` and ``petacq-dicom``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from petacq.errors import PetacqError


def run(
    parser: argparse.ArgumentParser,
    arguments: Sequence[str] | None,
    write: Callable[[argparse.Namespace], str],
) -> int:
    """Prints what ``write`` returns. Exit status: 0 success, 64 usage, 65 cannot be converted, 74 I/O failure."""
    try:
        given = parser.parse_args(arguments)
    except SystemExit as end:
        return 64 if end.code else 0
    try:
        print(write(given))
    except OSError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 74
    except (PetacqError, ImportError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 65
    return 0
