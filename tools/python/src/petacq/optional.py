"""Packages that only some calls need."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from petacq.errors import PetacqError

PETSIRD_VERSIONS = ("0.9.1", "0.12.0")


def pandas_module() -> Any:
    """Raises ImportError, which says how to get it, without pandas."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("petacq: a DataFrame needs pandas: install it (pip install petacq[pandas])") from error
    return pandas


def pydicom_module() -> Any:
    """Raises ImportError, which says how to get it, without pydicom."""
    try:
        import pydicom
        import pydicom.uid
    except ImportError as error:
        raise ImportError("petacq: DICOM needs pydicom: install it (pip install petacq[dicom])") from error
    return pydicom


def petsird_package() -> Any:
    """The ``petsird`` package. Raises PetacqError if it is missing or of another version."""
    expected = " or ".join(PETSIRD_VERSIONS)
    try:
        import petsird
    except ImportError as error:
        raise PetacqError(
            f"the package petsird is not installed: pip install petsird=={PETSIRD_VERSIONS[-1]}"
        ) from error
    found = version("petsird")
    if found not in PETSIRD_VERSIONS:
        raise PetacqError(
            f"petsird {found} is installed, expected {expected}: the format differs from version to version"
        )
    return petsird
