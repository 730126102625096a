"""The normalisation of a scanner: one HDF5 file of petcal derive normalisation. Needs h5py."""

from __future__ import annotations

import hashlib
import math
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from petacq.calibration import read_table
from petacq.errors import CalibrationError
from petacq.normalisation.pair_classes import PairClasses
from petacq.scanner import Scanner
from petacq.scanner.arrangement import Integers


@dataclass(frozen=True)
class Normalisation:
    """The chance that a pair of crystals finds a pair of photons, relative to PairWeights, is
    ``efficiency[a] * efficiency[b] * transaxial[...] * axial[...]``."""

    scanner: Scanner
    efficiency: npt.NDArray[np.float32]  #: ``[crystal]``; 0: dead
    #: ``[modules apart][column][column]``; of the long form those of ``classes``, one after the other
    transaxial: npt.NDArray[np.float32]
    axial: npt.NDArray[np.float32]  #: ``[ring][ring]``; of the long form those of ``classes``
    #: Turns the activity concentration of an image, as if each photon in a crystal were detected with chance 1, into
    #: the true one; None until a source of known activity was measured.
    activity_factor: float | None
    sha256: str
    #: Of the long form; None there: the file has no geometric factors, and both tables are empty.
    classes: PairClasses | None = None
    #: At which photons interact in the weights that these factors are relative to; None: as crystals absorb them.
    depth_mm: float | None = None

    @classmethod
    def load(cls, path: str | os.PathLike[str], scanner: Scanner) -> Normalisation:
        """Raises CalibrationError for a file that does not fit the scanner, OSError if it cannot be opened,
        ImportError without h5py."""
        try:
            import h5py
        except ImportError as error:
            raise ImportError("petacq: normalisations are HDF5: install h5py (pip install petacq[hdf5])") from error
        content = Path(path).read_bytes()  # raises OSError; also for the SHA-256
        try:
            with h5py.File(path, "r") as file:
                efficiency = read_table(file, "efficiency", np.float32, (scanner.crystal_count,))
                classes = None if scanner.is_ring else PairClasses.read(file, scanner)
                shapes = _shapes(scanner, classes)
                transaxial, axial = (
                    np.ones(0, np.float32) if shape is None else read_table(file, name, np.float32, shape)
                    for name, shape in zip(("transaxial", "axial"), shapes)
                )
                factor = file.attrs.get("activity_factor")
                depth_mm = _depth_mm(file.attrs.get("depth_mm"))
        except CalibrationError as error:
            raise CalibrationError(f"{path}: {error}") from error
        except (OSError, RuntimeError) as error:
            raise CalibrationError(f"{path}: not a readable HDF5 file: {error}") from error
        for name, values in (("efficiency", efficiency), ("transaxial", transaxial), ("axial", axial)):
            if not (np.isfinite(values).all() and (values >= 0).all()):
                raise CalibrationError(f"{path}: {name}: expected finite values of at least 0")
        if factor is not None and not (np.isfinite(factor) and factor > 0):
            raise CalibrationError(f"{path}: activity_factor: expected a number above 0, found {factor}")
        known = None if factor is None else float(factor)
        sha256 = hashlib.sha256(content).hexdigest()
        return cls(scanner, efficiency, transaxial, axial, known, sha256, classes, depth_mm)

    def of_lines(self, a: npt.ArrayLike, b: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The factors of pairs of crystals without the efficiencies of the crystals. Takes arrays."""
        first, second = np.broadcast_arrays(np.asarray(a, np.int64), np.asarray(b, np.int64))
        s = self.scanner
        if s.is_ring:
            place_a, place_b = first % s.crystals_in_ring, second % s.crystals_in_ring
            across = self.transaxial[self._classes(place_a, place_b)]
            along = self.axial[first // s.crystals_in_ring, second // s.crystals_in_ring]
        elif self.classes is None:
            return np.ones(first.shape)
        else:
            at_transaxial, at_axial = self.classes.entries(first, second)
            across, along = self.transaxial[at_transaxial], self.axial[at_axial]
        return np.asarray(across.astype(float) * along)

    def _classes(self, a: Integers, b: Integers) -> tuple[Integers, Integers, Integers]:
        """Neither way around the ring is shorter within a module and across the whole ring: the lower place first."""
        columns, modules = self.scanner.crystals_per_module_y, self.scanner.modules_in_ring
        up = (b // columns - a // columns) % modules
        forwards = np.where((up == 0) | (2 * up == modules), a < b, 2 * up < modules)
        first, second = np.where(forwards, a, b) % columns, np.where(forwards, b, a) % columns
        return np.minimum(up, modules - up), first, second


def _shapes(scanner: Scanner, classes: PairClasses | None) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    """Of the tables transaxial and axial; None: there is none."""
    if not scanner.is_ring:
        return ((classes.counts[0],), (classes.counts[1],)) if classes is not None else (None, None)
    columns = scanner.crystals_per_module_y
    return (scanner.modules_in_ring // 2 + 1, columns, columns), (scanner.rings, scanner.rings)


def _depth_mm(said: object) -> float | None:
    text = said.decode() if isinstance(said, bytes) else said
    try:
        depth = float(str(text))
    except ValueError:  # "absorption at 0.83 per cm", or nothing
        return None
    return depth if math.isfinite(depth) and depth >= 0 else None
