"""The normalisation of a scanner: one HDF5 file of petcal derive normalisation. Needs h5py."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from petacq.calibration import _read
from petacq.errors import CalibrationError
from petacq.scanner import Scanner
from petacq.scanner.arrangement import Integers


@dataclass(frozen=True)
class Normalisation:
    """The chance that a pair of crystals finds a pair of photons, relative to that of the solid angle of their front
    faces, is ``efficiency[a] * efficiency[b] * transaxial[...] * axial[...]``."""

    scanner: Scanner
    efficiency: npt.NDArray[np.float32]  #: ``[crystal]``; 0: dead
    transaxial: npt.NDArray[np.float32]  #: ``[modules apart][column][column]``
    axial: npt.NDArray[np.float32]  #: ``[ring][ring]``
    #: Turns the activity concentration of an image, as if each photon in a crystal were detected with chance 1, into
    #: the true one; None until a source of known activity was measured.
    activity_factor: float | None
    sha256: str

    @classmethod
    def load(cls, path: str | os.PathLike[str], scanner: Scanner) -> Normalisation:
        """Raises CalibrationError for a file that does not fit the scanner, OSError if it cannot be opened,
        ImportError without h5py."""
        try:
            import h5py
        except ImportError as error:
            raise ImportError("petacq: normalisations are HDF5: install h5py (pip install petacq[hdf5])") from error
        content = Path(path).read_bytes()  # raises OSError; also for the SHA-256
        if not scanner.is_ring:
            raise CalibrationError(f"{path}: expected a scanner that is a ring; the factors of pairs are read for rings")
        columns = scanner.crystals_per_module_y
        rings = scanner.crystal_count // scanner.crystals_in_ring
        try:
            with h5py.File(path, "r") as file:
                efficiency = _read(file, "efficiency", np.float32, (scanner.crystal_count,))
                transaxial = _read(
                    file, "transaxial", np.float32, (scanner.modules_in_ring // 2 + 1, columns, columns)
                )
                axial = _read(file, "axial", np.float32, (rings, rings))
                factor = file.attrs.get("activity_factor")
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
        return cls(scanner, efficiency, transaxial, axial, known, hashlib.sha256(content).hexdigest())

    def of_lines(self, a: npt.ArrayLike, b: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The factors of pairs of crystals without the efficiencies of the crystals. Takes arrays."""
        s = self.scanner
        first, second = np.broadcast_arrays(np.asarray(a, np.int64), np.asarray(b, np.int64))
        place_a, place_b = first % s.crystals_in_ring, second % s.crystals_in_ring
        across = self.transaxial[self._classes(place_a, place_b)]
        along = self.axial[first // s.crystals_in_ring, second // s.crystals_in_ring]
        return np.asarray(across.astype(float) * along)

    def _classes(self, a: Integers, b: Integers) -> tuple[Integers, Integers, Integers]:
        """Neither way around the ring is shorter within a module and across the whole ring: the lower place first."""
        columns, modules = self.scanner.crystals_per_module_y, self.scanner.modules_in_ring
        up = (b // columns - a // columns) % modules
        forwards = np.where((up == 0) | (2 * up == modules), a < b, 2 * up < modules)
        first, second = np.where(forwards, a, b) % columns, np.where(forwards, b, a) % columns
        return np.minimum(up, modules - up), first, second
