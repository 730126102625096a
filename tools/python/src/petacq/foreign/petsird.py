"""Reads the pairs of a PETSIRD file with the official package."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from datetime import datetime, timezone
from importlib.metadata import version
from typing import Any

import numpy as np

from petacq.coverage import UNKNOWN_DT, UNKNOWN_ENERGIES
from petacq.errors import PetacqError
from petacq.foreign.records_file import UNKNOWN_CLOCK, UNKNOWN_RULES, Columns, ForeignRecords, in_order, pairs_of
from petacq.foreign.sound import each_sound, sound
from petacq.nuclide_codes import NUCLIDE_CODES
from petacq.optional import petsird_package
from petacq.scanner.arranged_scanner import ArrangedScanner
from petacq.scanner.command import MATERIALS, import_geometry
from petacq.scanner.petsird_geometry import read_petsird
from petacq.scanner.scanner import Scanner

_MM_PER_PS = 0.299792458
_LEAST_MBQ, _MOST_MBQ = 1e-9, 1e6  # of an operator
_LAST_NS = 9_000_000_000_000_000_000  # a coverage has no later time
_ENERGIES_IN_BINS = "the energies of its photons within the bins of the file (their middle in each record)"


def read_pairs(path: str | os.PathLike[str], tick_ps: float, scanner: Scanner | None = None) -> ForeignRecords:
    """Prompts and delayeds. Without ``scanner`` the description is that of the crystals in the file.

    Raises PetacqError, OSError."""
    petsird = petsird_package()
    crystals, named, name = read_petsird(path)
    if scanner is None:
        materials = [material if material in MATERIALS else "LYSO" for material in named]
        found, _ = import_geometry(crystals, materials, name or "PETSIRD", tick_ps)
        document: Any = found.document
        crystal_of = np.empty(len(found.crystals), np.int64)
        crystal_of[found.crystals] = np.arange(len(found.crystals))
    else:
        if not isinstance(scanner, ArrangedScanner):
            raise PetacqError("--scanner: expected a description in the long form, or none: then it is made of the file")
        document, tick_ps = scanner.description, scanner.tick_ps
        crystal_of = _by_place(crystals.front_mm, scanner.positions_mm(), 4 * crystals.tolerance_mm, str(path))
    header = _header(petsird, path)
    tells_energies = all(len(edges.edges) > 2 for edges in header.scanner.event_energy_bin_edges)
    tells_dt = all(len(edges.edges) > 2 for row in header.scanner.tof_bin_edges for edges in row)
    records = ForeignRecords("coincidences", document, iter(()), intervals=[], format="petsird", version=version("petsird"),
                             file=os.path.basename(path))
    records.anchor = _start(header.exam)
    records.source = _source(header.exam)
    records.unknown = [UNKNOWN_CLOCK] if records.anchor is None else []
    records.unknown += [UNKNOWN_RULES, "times of its pairs within a time block"]
    records.unknown.append(_ENERGIES_IN_BINS if tells_energies else UNKNOWN_ENERGIES)
    if not tells_dt:
        records.unknown.append(UNKNOWN_DT)
    records.pieces = _pieces(petsird, path, tick_ps, crystal_of, records, tells_energies, tells_dt)
    return records


def _header(petsird: Any, path: str | os.PathLike[str]) -> Any:
    with open(path, "rb") as file, sound(f"{path}: expected a sound PETSIRD file"):
        return petsird.BinaryPETSIRDReader(file).read_header()


def _ns(time: Any) -> int:
    """Since 1970, which stands for no time: 0."""
    ns = 0 if time is None else int(time.numpy_value.astype(np.int64))
    return ns if 0 < ns <= _LAST_NS else 0


def _start(exam: Any) -> tuple[int, int] | None:
    """When the time blocks begin to count."""
    ns = 0 if exam is None else _ns(exam.start_of_acquisition)
    return (0, ns) if ns else None


def _source(exam: Any) -> dict[str, Any] | None:
    """The nuclide, by its code or its name, and the dose at the start time, which is an activity and its assay. Several sources
    are none."""
    listed = getattr(exam, "radiopharmaceuticals", None) or []
    if len(listed) != 1:
        return None
    code = listed[0].radionuclide_code_sequence
    coded = [name for name, of in NUCLIDE_CODES.items() if (of.scheme, of.value) == (code.coding_scheme_designator, code.code_value)]
    if not (name := coded[0] if coded else code.code_meaning):
        return None
    dose, ns = float(listed[0].radionuclide_total_dose), _ns(listed[0].radiopharmaceutical_start_date_time)
    if not (_LEAST_MBQ <= dose <= _MOST_MBQ and ns):
        return {"nuclide": name}
    assay = datetime.fromtimestamp(ns // 1_000_000 / 1000, timezone.utc)
    return {"nuclide": name, "activity_MBq": dose, "assay_utc": assay.isoformat(timespec="milliseconds").replace("+00:00", "Z")}


def _by_place(points: Any, places: Any, tolerance_mm: float, path: str) -> Any:
    """``[number in the file]``: the crystal at the same place."""
    cell = max(100 * tolerance_mm, 1e-3)
    at = {tuple(key): crystal for crystal, key in enumerate(np.floor(places / cell).astype(np.int64).tolist())}
    found = np.empty(len(points), np.int64)
    for number, point in enumerate(points):
        key = np.floor(point / cell).astype(np.int64)
        near = [
            at[k]
            for k in (tuple((key + (i, j, m)).tolist()) for i in (-1, 0, 1) for j in (-1, 0, 1) for m in (-1, 0, 1))
            if k in at
        ]
        near = [crystal for crystal in near if np.abs(places[crystal] - point).max() <= tolerance_mm]
        if len(near) != 1:
            raise PetacqError(f"{path}: crystal {number} at {point.round(4).tolist()} mm is none of the scanner; expected --scanner "
                              "with the description of this file, or none")
        found[number] = near[0]
    return found


def _pieces(
    petsird: Any, path: Any, tick_ps: float, crystal_of: Any, records: ForeignRecords, tells_energies: bool, tells_dt: bool
) -> Iterator[Columns]:
    with open(path, "rb") as file:
        reader = petsird.BinaryPETSIRDReader(file)
        information = reader.read_header().scanner
        energies = [np.asarray(edges.edges, np.float64) for edges in information.event_energy_bin_edges]
        counts = [
            len(of.transforms) * len(of.object.detecting_elements.transforms)
            for of in information.scanner_geometry.replicated_modules
        ]
        first = np.concatenate([[0], np.cumsum(counts)])[:-1]
        for block in each_sound(reader.read_time_blocks(), f"{path}: expected a sound PETSIRD file"):
            if not isinstance(block, petsird.TimeBlock.EventTimeBlock):
                continue
            interval = block.value.time_interval
            start, stop = (math.ceil(int(ms) * 1e9 / tick_ps) for ms in (interval.start, interval.stop))
            _cover(records.intervals, start, stop)
            parts = []
            for lists, delayed in ((block.value.prompt_events, False), (block.value.delayed_events or [], True)):
                for type_a, row in enumerate(lists):
                    for type_b, events in enumerate(row):
                        if not len(events):
                            continue
                        bins = np.array([event.detection_bins for event in events], np.int64).reshape(-1, 2)
                        tof = np.array([event.tof_idx for event in events], np.int64)
                        edges = np.asarray(information.tof_bin_edges[type_a][type_b].edges, np.float64)
                        photons = [_photons(bins[:, k], of, energies[of], first, counts, crystal_of, tells_energies, path)
                                   for k, of in enumerate((type_a, type_b))]
                        if ((tof < 0) | (tof >= len(edges) - 1)).any():
                            raise PetacqError(f"{path}: a TOF bin that the header does not have")
                        # Half the difference of the paths, first less second.
                        middle = (edges[tof] + edges[tof + 1]) / 2 if tells_dt else np.zeros(len(tof))
                        apart = np.rint(2 * middle / _MM_PER_PS / tick_ps).astype(np.int64)
                        time = np.full(len(tof), start, np.int64)
                        parts.append(pairs_of(time + np.maximum(apart, 0), time + np.maximum(-apart, 0), photons[0][0], photons[1][0],
                                              photons[0][1], photons[1][1], delayed))
            if parts:
                yield in_order(parts)


def _photons(
    bins: Any, of_type: int, edges: Any, first: Any, counts: list[int], crystal_of: Any, tells_energies: bool, path: Any
) -> tuple[Any, Any]:
    """Crystal and energy."""
    energy_bins = len(edges) - 1
    element = bins // energy_bins
    if ((bins < 0) | (element >= counts[of_type])).any():
        raise PetacqError(f"{path}: a detection bin that the header does not have")
    middle = (edges[:-1] + edges[1:]) / 2 if tells_energies else np.zeros(energy_bins)
    return crystal_of[first[of_type] + element], middle[bins % energy_bins]


def _cover(intervals: list[list[int]] | None, start: int, stop: int) -> None:
    if intervals is None or stop <= start:
        return
    if intervals and intervals[-1][1] >= start:
        intervals[-1][1] = max(intervals[-1][1], stop)
    else:
        intervals.append([start, stop])
