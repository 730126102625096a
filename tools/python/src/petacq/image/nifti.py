"""Reads the NIfTI files that ``petlm`` writes."""

from __future__ import annotations

import gzip
import math
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from petacq.errors import PetacqError

_HEADER_BYTES = 352


@dataclass(frozen=True)
class Volume:
    values: npt.NDArray[np.float32]  # [z][y][x], of a series [frame][z][y][x]
    voxel_mm: tuple[float, float, float]  # along x, y, z
    first_mm: tuple[float, float, float]  # middle of the first voxel
    description: str


def read_nifti(path: Path) -> Volume:
    """A file of ``petlm``, also compressed (.nii.gz): three or four dimensions of 32-bit floats along the axes of the scanner.
    Raises PetacqError for another file, OSError."""
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError, zlib.error) as error:
            raise PetacqError(f"{path}: expected a NIfTI-1 file: it cannot be decompressed: {error}") from error
    if len(data) < _HEADER_BYTES or data[344:348] != b"n+1\0" or data[:4] != (348).to_bytes(4, "little"):
        raise PetacqError(f"{path}: expected a NIfTI-1 file of petlm")
    dim = np.frombuffer(data, "<i2", 8, 40)
    axes = int(dim[0])
    affine = np.frombuffer(data, "<f4", 12, 280).reshape(3, 4)
    along = np.array_equal(affine[:, :3], np.diag(np.diag(affine))) and np.all(np.diag(affine) > 0)
    if axes not in (3, 4) or int(np.frombuffer(data, "<i2", 1, 70)[0]) != 16 or not along or np.any(dim[1 : axes + 1] < 1):
        raise PetacqError(
            f"{path}: expected three or four dimensions of 32-bit floats along the axes of the scanner, as petlm writes them;"
            " nibabel reads others"
        )
    shape = tuple(int(n) for n in dim[axes:0:-1])
    expected = _HEADER_BYTES + 4 * math.prod(shape)
    if len(data) != expected:
        raise PetacqError(f"{path}: expected {expected} bytes, found {len(data)}")
    x, y, z = (float(size) for size in np.diag(affine))
    first = tuple(float(at) for at in affine[:, 3])
    return Volume(
        np.frombuffer(data, "<f4", -1, _HEADER_BYTES).reshape(shape),
        (x, y, z),
        (first[0], first[1], first[2]),
        data[148:228].split(b"\0")[0].decode("utf-8", "replace"),
    )
