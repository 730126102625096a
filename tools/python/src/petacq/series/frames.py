"""Reads the series of images that ``petlm frames`` made."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from petacq.errors import PetacqError


@dataclass(frozen=True)
class FrameSeries:
    values: npt.NDArray[np.float32]  # [frame][z][y][x]
    voxel_mm: tuple[float, float, float]
    first_mm: tuple[float, float, float]  # middle of the first voxel
    about: dict[str, Any]  # the sidecar
    sidecar: bytes


def read_series(folder: Path) -> FrameSeries:
    """Raises PetacqError for what is no series of frames, OSError."""
    path = folder / "frames.nii"
    data = path.read_bytes()
    if len(data) < 352 or data[344:348] != b"n+1\0":
        raise PetacqError(f"{path}: expected a NIfTI-1 file of petlm frames")
    dim = np.frombuffer(data, "<i2", 8, 40)
    if dim[0] != 4 or int(np.frombuffer(data, "<i2", 1, 70)[0]) != 16:
        raise PetacqError(f"{path}: expected four dimensions of 32-bit floats")
    shape = tuple(int(n) for n in dim[4:0:-1])
    if len(data) != 352 + 4 * math.prod(shape):
        raise PetacqError(f"{path}: expected {352 + 4 * math.prod(shape)} bytes, found {len(data)}")
    voxel = np.frombuffer(data, "<f4", 3, 80)
    first = np.frombuffer(data, "<f4", 12, 280)[3::4]
    sidecar = (folder / "frames.json").read_bytes()
    try:
        about: dict[str, Any] = json.loads(sidecar)
        count = len(about["Frames"])
    except (ValueError, KeyError, TypeError) as error:
        raise PetacqError(f"{folder / 'frames.json'}: expected the sidecar of petlm frames") from error
    if count != shape[0]:
        raise PetacqError(f"{folder}: frames.json has {count} frames, frames.nii {shape[0]}")
    return FrameSeries(
        np.frombuffer(data, "<f4", -1, 352).reshape(shape),
        (float(voxel[0]), float(voxel[1]), float(voxel[2])),
        (float(first[0]), float(first[1]), float(first[2])),
        about,
        sidecar,
    )
