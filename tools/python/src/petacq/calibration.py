"""The calibration of a scanner: one HDF5 file (docs/reference/configuration.md of petacqd). Needs h5py."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from petacq.errors import CalibrationError
from petacq.scanner import Scanner
from petacq.scanner.arrangement import Integers

ADC_PER_BIN = 10


@dataclass(frozen=True)
class Calibration:
    """The tables that turn frames into singles."""

    scanner: Scanner
    #: ``[bdm][du][x + y * position_size]``: origin of the crystal; ``crystals_per_du`` or more: outside any crystal.
    #: u8; u16 if a block has more than 256 crystals, in the long form a unit more than 255.
    position_table: npt.NDArray[np.unsignedinteger[Any]]
    #: ``[bdm][du][local][bin]``: keV per ADC count.
    energy_factor: npt.NDArray[np.float32]
    #: ``[crystal]``: ticks added to the raw time; None if the file has none.
    time_offset: npt.NDArray[np.int32] | None
    #: SHA-256 of the file, as in ``run.json``.
    sha256: str

    @classmethod
    def load(cls, path: str | os.PathLike[str], scanner: Scanner) -> Calibration:
        """Raises CalibrationError for a file that does not fit the scanner, OSError if it cannot be opened,
        ImportError without h5py."""
        try:
            import h5py
        except ImportError as error:
            raise ImportError("petacq: calibrations are HDF5: install h5py (pip install petacq[hdf5])") from error
        content = Path(path).read_bytes()  # raises OSError; also for the SHA-256
        units = (scanner.bdm_count, scanner.du_count)
        entry = np.uint16 if scanner.crystals_per_du > 256 else np.uint8
        try:
            with h5py.File(path, "r") as file:
                positions = read_table(file, "position_table", entry, (*units, scanner.position_size**2))
                factors = read_table(file, "energy_factor", np.float32, (*units, scanner.crystals_per_du, None))
                offsets = None
                if "time_offset" in file:
                    offsets = read_table(file, "time_offset", np.int32, (scanner.crystal_count,))
        except CalibrationError as error:
            raise CalibrationError(f"{path}: {error}") from error
        except (OSError, RuntimeError) as error:
            raise CalibrationError(f"{path}: not a readable HDF5 file: {error}") from error
        if not (np.isfinite(factors).all() and (factors >= 0).all()):
            raise CalibrationError(f"{path}: energy_factor: expected finite values of at least 0")
        return cls(scanner, positions, factors, offsets, hashlib.sha256(content).hexdigest())

    @property
    def bins(self) -> int:
        """Bins of the ADC for each crystal, of 10 counts each; the last one holds for all larger values."""
        return int(self.energy_factor.shape[3])

    def crystal(self, bdm: npt.ArrayLike, du: npt.ArrayLike, x: npt.ArrayLike, y: npt.ArrayLike) -> Integers:
        """The crystal at a position of a block; -1 outside any crystal. Takes arrays."""
        place = np.asarray(x, np.int64) + np.asarray(y, np.int64) * self.scanner.position_size
        origin = self.position_table[np.asarray(bdm, np.int64), np.asarray(du, np.int64), place].astype(np.int64)
        inside = origin < self.scanner.crystals_per_du
        local = self.scanner.local_of_origin(np.where(inside, origin, 0))
        return np.where(inside, self.scanner.crystal(bdm, du, local), -1)

    def energy_keV(self, crystal: npt.ArrayLike, adc: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """The energy of an ADC value of a crystal, computed as petacqd does: one f32 product."""
        counts = np.asarray(adc, np.int64)
        s = self.scanner
        bins = np.minimum(counts // ADC_PER_BIN, self.bins - 1)
        factor = self.energy_factor[s.bdm(crystal), s.du(crystal), s.local(crystal), bins]
        return np.asarray(counts.astype(np.float32) * factor)


def read_table(file: Any, name: str, kind: type[Any], shape: tuple[int | None, ...]) -> npt.NDArray[Any]:
    """A data set of an HDF5 file of petacqd. ``shape``: None: any length. Raises CalibrationError if it is missing or different."""
    import h5py

    expected = f"{np.dtype(kind)}{[n if n is not None else 'bins' for n in shape]}"
    if name not in file:
        raise CalibrationError(f'data set "{name}": expected {expected}, found no such data set')
    data = file[name]
    if not isinstance(data, h5py.Dataset):
        raise CalibrationError(f'data set "{name}": expected {expected}, found something else')
    fits = len(data.shape) == len(shape) and all(e is None or f == e for f, e in zip(data.shape, shape))
    if not fits or data.dtype.newbyteorder("=") != np.dtype(kind) or 0 in data.shape:
        raise CalibrationError(f'data set "{name}": expected {expected}, found {data.dtype}{list(data.shape)}')
    return np.asarray(data[()], kind)
