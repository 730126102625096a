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


def pyarrow_module() -> Any:
    """With its Parquet. Raises ImportError, which says how to get it, without pyarrow."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        hint = "install it (pip install petacq[arrow]; with NumPy 1 also 'pyarrow<26')"
        raise ImportError(f"petacq: Arrow and Parquet need pyarrow: {error}: {hint}") from error
    return pyarrow


def matplotlib_module() -> Any:
    """With its figures. Raises ImportError, which says how to get it, without matplotlib."""
    try:
        import matplotlib
        import matplotlib.figure
    except ImportError as error:
        raise ImportError("petacq: a figure needs matplotlib: install it (pip install petacq[notebook])") from error
    return matplotlib


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
