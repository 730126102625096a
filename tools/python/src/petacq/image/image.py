"""An image, or a series of images, that ``petlm`` made."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from petacq.errors import PetacqError
from petacq.image import figure, page
from petacq.image.cuts import Cut, brightest_place, cuts_at
from petacq.image.nifti import read_nifti

if TYPE_CHECKING:
    import matplotlib.figure

Point = tuple[float, float, float]
Floats = npt.NDArray[np.float32]


def open_image(path: str | os.PathLike[str]) -> Image:
    """The image in the directory of ``petlm image`` or ``petlm frames``, or in a file of theirs, .nii or .nii.gz.

    Raises PetacqError for a directory without an image and for a file that ``petlm`` did not write, OSError."""
    source = Path(path)
    if source.is_dir():
        found = [name for name in ("image.nii", "frames.nii") if (source / name).is_file()]
        if len(found) != 1:
            there = ", ".join(sorted(file.name for file in source.glob("*.nii*"))) or "none"
            raise PetacqError(f"{source}: expected one of image.nii and frames.nii; volumes in it: {there}")
        source = source / found[0]
    volume = read_nifti(source)
    return Image(volume.values, volume.voxel_mm, volume.first_mm, source, _sidecar(source), volume.description)


@dataclass(frozen=True, eq=False)
class Image:
    """Values of voxels in the axes of the scanner (docs/reference/geometry.md). In a notebook it shows itself: three cuts through
    its brightest place, and the scale of its values."""

    #: ``[z][y][x]``, of a series ``[frame][z][y][x]``. NaN: no data.
    values: Floats
    #: Edges of a voxel along x, y and z.
    voxel_mm: Point
    #: Middle of the first voxel.
    first_mm: Point
    path: Path
    #: What stands beside it, ``image.json`` or ``frames.json``: unit, corrections, settings. Empty if there is nothing.
    about: dict[str, Any] = field(default_factory=dict, repr=False)
    #: Of the NIfTI file: what it was corrected for, in short.
    description: str = ""

    def __repr__(self) -> str:
        size = " x ".join(map(str, self.values.shape[:-4:-1]))
        frames = f"{self.frame_count} frames of " if self.values.ndim == 4 else ""
        return f"<Image {str(self.path)!r}: {frames}{size} voxels, {self.unit or 'unknown unit'}>"

    @property
    def unit(self) -> str:
        """Such as "kBq/ml"; empty: unknown."""
        return str(self.about.get("unit") or self.about.get("Units") or "").replace("kBq/mL", "kBq/ml")

    @property
    def frame_count(self) -> int:
        return len(self.values) if self.values.ndim == 4 else 1

    def frame(self, number: int) -> Image:
        """One image of a series, from 0. Raises IndexError."""
        if self.values.ndim == 3:
            if number not in (0, -1):
                raise IndexError(f"frame {number} of a single image")
            return self
        return replace(self, values=self.values[number])

    def axes_mm(self) -> tuple[Floats, Floats, Floats]:
        """The middles of the voxels along x, y and z."""
        counts = self.values.shape[:-4:-1]
        x, y, z = (
            (first + size * np.arange(count)).astype(np.float32)
            for first, size, count in zip(self.first_mm, self.voxel_mm, counts)
        )
        return x, y, z

    def voxel(self, place_mm: Sequence[float]) -> tuple[int, int, int]:
        """The index, z, y, x, of the voxel at a place x, y, z: ``image.values[image.voxel((14, 7, 6))]``. Raises IndexError outside."""
        index = [round((at - first) / size) for at, first, size in zip(place_mm, self.first_mm, self.voxel_mm, strict=True)]
        counts = self.values.shape[:-4:-1]
        if not all(0 <= i < count for i, count in zip(index, counts)):
            raise IndexError(f"{tuple(place_mm)} mm is outside of the image")
        return index[2], index[1], index[0]

    def brightest_mm(self) -> Point:
        """The largest of the 3 x 3 x 3 voxels with the largest mean; of a series, in the sum of its frames."""
        return self._brightest

    def cuts(self, at_mm: Sequence[float] | None = None) -> tuple[Cut, Cut, Cut]:
        """The planes across z, y and x through a place, by default the brightest one. Of a series: of its first frame with data."""
        z, y, x = self.voxel(self.brightest_mm() if at_mm is None else at_mm)
        return cuts_at(self._shown(), (x, y, z), self.axes_mm(), self.voxel_mm)

    def figure(self, at_mm: Sequence[float] | None = None, black: float | None = None) -> matplotlib.figure.Figure:
        """A matplotlib figure of the cuts with axes in mm and the scale, of which ``black`` is the upper end: by default the largest
        value of the cuts. Raises ImportError without matplotlib."""
        return figure.figure_of(self.cuts(at_mm), self._black(at_mm, black), self.unit)

    def to_html(self, at_mm: Sequence[float] | None = None, black: float | None = None) -> str:
        """The cuts and the scale as HTML. Needs no other package."""
        return page.html_of(self.cuts(at_mm), self._black(at_mm, black), self.unit, self.description, self._title())

    def _repr_html_(self) -> str:
        return self.to_html()

    def _repr_png_(self) -> bytes | None:
        """None without matplotlib."""
        try:
            return figure.png_of(self.figure())
        except ImportError:
            return None

    @cached_property
    def _brightest(self) -> Point:
        values = np.nan_to_num(self.values, nan=0.0)
        z, y, x = brightest_place(values if values.ndim == 3 else values.sum(0))
        x_mm, y_mm, z_mm = self.axes_mm()
        return float(x_mm[x]), float(y_mm[y]), float(z_mm[z])

    def _shown(self) -> Floats:
        shown: Floats = self.values if self.values.ndim == 3 else self.values[self._first_with_data()]
        return shown

    def _first_with_data(self) -> int:
        """The first frame that has any; otherwise the first one."""
        return int(np.argmax(~np.isnan(self.values).all(axis=(1, 2, 3))))

    def _black(self, at_mm: Sequence[float] | None, black: float | None) -> float:
        if black is not None and not black > 0:
            raise ValueError(f"black {black}: expected a value above 0")
        return black or max(float(np.nan_to_num(cut.values, nan=0.0).max()) for cut in self.cuts(at_mm))

    def _title(self) -> str:
        series = f", frame {self._first_with_data() + 1} of {self.frame_count}" if self.values.ndim == 4 else ""
        return f"{self.path.parent.name}/{self.path.name}{series}"


def _sidecar(path: Path) -> dict[str, Any]:
    stem = path.name.removesuffix(".gz").removesuffix(".nii")
    try:
        about = json.loads((path.parent / f"{stem}.json").read_bytes())
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError) as error:
        raise PetacqError(f"{path.parent / stem}.json: not JSON: {error}") from error
    return about if isinstance(about, dict) else {}
