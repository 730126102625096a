"""Reads the images that ``petlm frames`` or ``petlm image`` made, as a series of frames."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from petacq.errors import PetacqError
from petacq.image.nifti import read_nifti
from petacq.series.keys import state
from petacq.series.single import sidecar_of_image


@dataclass(frozen=True)
class FrameSeries:
    path: Path  # of the NIfTI file
    values: npt.NDArray[np.float32]  # [frame][z][y][x]
    voxel_mm: tuple[float, float, float]
    first_mm: tuple[float, float, float]  # middle of the first voxel
    about: dict[str, Any]  # the sidecar
    sidecar: bytes


def read_series(folder: Path, stated: Mapping[str, Any] | None = None) -> FrameSeries:
    """That in a directory of ``petlm frames``, or the only frame in one of ``petlm image``. ``stated``: keys that petlm does not
    know. Raises PetacqError for what is neither and for keys that cannot be stated, OSError."""
    single = not (folder / "frames.nii").exists() and (folder / "image.nii").exists()
    path = folder / ("image.nii" if single else "frames.nii")
    volume = read_nifti(path)
    if volume.values.ndim != (3 if single else 4):
        raise PetacqError(f"{path}: expected {'one image' if single else 'four dimensions of 32-bit floats'}")
    beside = path.with_suffix(".json")
    sidecar = beside.read_bytes()
    try:
        about: dict[str, Any] = json.loads(sidecar)
        if single:
            about = sidecar_of_image(about, str(beside))
        count = len(about["Frames"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise PetacqError(f"{beside}: expected the sidecar of petlm {path.stem}") from error
    if stated:
        state(about, stated)
    if single or stated:
        sidecar = (json.dumps(about, indent=2, ensure_ascii=False) + "\n").encode()
    values = volume.values[np.newaxis] if single else volume.values
    if count != values.shape[0]:
        raise PetacqError(f"{folder}: frames.json has {count} frames, frames.nii {values.shape[0]}")
    return FrameSeries(path, values, volume.voxel_mm, volume.first_mm, about, sidecar)
