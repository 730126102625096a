"""The HDF5 file that ``petlm import --format hdf5`` reads: docs/reference/formats/hdf5.md."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from petacq.errors import PetacqError

Columns = Mapping[str, npt.NDArray[Any]]

UNKNOWN_TIMES = "when its records were taken, and for how long"
UNKNOWN_CLOCK = "the time of day"
UNKNOWN_RULES = "the rules by which its records were made"

_TYPES = {
    "singles": {"time": ("<u8", "ticks"), "crystal": ("<u4", "1"), "energy": ("<f4", "keV")},
    "coincidences": {
        "kind": ("u1", "1"),
        "time": ("<u8", "ticks"),
        "dt": ("<u4", "ticks"),
        "crystal_a": ("<u4", "1"),
        "crystal_b": ("<u4", "1"),
        "energy_a": ("<f4", "keV"),
        "energy_b": ("<f4", "keV"),
    },
}
_ORDER = ("time", "kind", "crystal_a", "dt", "crystal_b", "energy_a", "energy_b")
_CHUNK = 65536


@dataclass
class ForeignRecords:
    """What a file of other software holds."""

    kind: str  #: "singles" or "coincidences"
    scanner: Mapping[str, Any]  #: the description, whose numbers of crystals the records have
    pieces: Iterator[Columns]  #: records in any order, a piece at a time
    unknown: list[str] = field(default_factory=list)  #: what the format does not tell, a phrase each
    intervals: list[list[int]] | None = None  #: ticks that are covered; complete after the last piece; None: not known
    anchor: tuple[int, int] | None = None  #: a tick and its UTC in nanoseconds since 1970; None: not known
    source: Mapping[str, Any] | None = None  #: ``nuclide``, and ``activity_MBq`` with ``assay_utc`` if they are known
    format: str = ""  #: of the file
    version: str | None = None  #: of the format; None: not known
    file: str = ""  #: its name


def write_records(path: str | os.PathLike[str], records: ForeignRecords) -> int:
    """Writes a new file. Returns the number of records. Raises PetacqError without h5py, and what the pieces raise."""
    try:
        import h5py
    except ImportError as error:
        raise PetacqError("h5py is not installed: pip install petacq[import]") from error
    count = 0
    with h5py.File(path, "x") as file:
        group = file.create_group(records.kind)
        sets = {}
        for name, (dtype, units) in _TYPES[records.kind].items():
            sets[name] = group.create_dataset(name, (0,), dtype, maxshape=(None,), chunks=(_CHUNK,), compression="gzip",
                                              compression_opts=1, shuffle=True)
            sets[name].attrs["units"] = units
        for columns in records.pieces:
            added = len(columns["time"])
            for name, data in sets.items():
                data.resize((count + added,))
                data[count:] = columns[name]
            count += added
        tick_ps = float(records.scanner["tick_ps"])
        anchor = records.anchor and {"ticks": records.anchor[0], "unix_ns": records.anchor[1]}
        file.attrs["tick_ps"] = tick_ps
        file.attrs["coverage"] = json.dumps({
            "version": 1, "tick_ps": tick_ps, "intervals": records.intervals, "anchor": anchor, "activity": None,
            "rules": {"coincidence": None, "energy": None}, "loss": {"live": None, "seconds_complete": False},
            "origin": {"runs": [], "calibration_sha256": None, "scanner_sha256": None}, "unknown": records.unknown,
        })
        version = {} if records.version is None else {"version": records.version}
        file.attrs["imported"] = json.dumps({"format": records.format, **version, "from": [records.file]})
        operator = {} if records.source is None else {"operator": records.source}
        file["run_json"] = json.dumps({"scanner": records.scanner, **operator})
    return count


def pairs_of(
    time_a: npt.NDArray[Any], time_b: npt.NDArray[Any], crystal_a: npt.NDArray[Any], crystal_b: npt.NDArray[Any],
    energy_a: npt.NDArray[Any], energy_b: npt.NDArray[Any], delayed: bool
) -> Columns:
    """Columns of pairs of photons in any order, times in ticks; the earlier one, and of two at one time the lower crystal,
    comes first. Raises PetacqError if they are too far apart."""
    swap = (time_b < time_a) | ((time_b == time_a) & (crystal_b < crystal_a))
    first, second = np.where(swap, time_b, time_a), np.where(swap, time_a, time_b)
    dt = second - first
    if len(dt) and int(dt.max()) >= 1 << 32:
        raise PetacqError(f"a pair of photons {int(dt.max())} ticks apart; expected less than 2^32")
    return {
        "kind": np.full(len(dt), int(delayed), np.uint8),
        "time": first,
        "dt": dt,
        "crystal_a": np.where(swap, crystal_b, crystal_a),
        "crystal_b": np.where(swap, crystal_a, crystal_b),
        "energy_a": np.where(swap, energy_b, energy_a),
        "energy_b": np.where(swap, energy_a, energy_b),
    }


def in_order(parts: Sequence[Columns]) -> Columns:
    """Parts of pairs as one, in the order of list-mode. ``petlm import`` puts records in order, but only over a limited number."""
    joined = {name: np.concatenate([part[name] for part in parts]) for name in _TYPES["coincidences"]}
    order = np.lexsort([joined[name] for name in reversed(_ORDER)])
    return {name: values[order] for name, values in joined.items()}


def ticks_of(times: npt.NDArray[Any], ps: float, tick_ps: float, name: str) -> npt.NDArray[np.uint64]:
    """Times in units of ``ps`` as the nearest ticks. Raises PetacqError for those that no list-mode holds."""
    ticks: npt.NDArray[np.float64] = np.rint(np.asarray(times, np.float64) * (ps / tick_ps))
    wrong = ~((ticks >= 0) & (ticks < 2.0**63))
    if wrong.any():
        first = int(np.flatnonzero(wrong)[0])
        raise PetacqError(f"{name}: expected times of 0 to 2^63 ticks, found {times[first]} in entry {first}")
    return ticks.astype(np.uint64)
