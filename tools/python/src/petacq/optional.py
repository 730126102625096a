"""Packages that only some calls need."""

from __future__ import annotations

from typing import Any


def pandas_module() -> Any:
    """Raises ImportError, which says how to get it, without pandas."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("petacq: a DataFrame needs pandas: install it (pip install petacq[pandas])") from error
    return pandas
