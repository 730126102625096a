"""Reads a PETSIRD file back with the official package and compares it with its run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from petacq.errors import PetacqError
from petacq.optional import petsird_package
from petacq.petsird_blocks import blocks, extras_of
from petacq.petsird_events import DEFAULTS, Events, Options, bins_of, count_of, intervals
from petacq.petsird_header import has_delayeds, header_of
from petacq.run import Run


@dataclass
class Compared:
    """How many events were compared."""

    prompts: int = 0
    delayeds: int = 0
    triples: int = 0


def compare(run: Run, path: str | os.PathLike[str], options: Options = DEFAULTS) -> Compared:
    """Compares header, every event, and all other time blocks with what this module makes of the run. Raises PetacqError at
    the first difference."""
    petsird = petsird_package()
    bins = bins_of(run, options)
    extras = extras_of(run, options, bins)
    report = Compared()
    expected = intervals(run, bins)
    others = blocks(petsird, extras, bins)
    with open(path, "rb") as file, petsird.BinaryPETSIRDReader(file) as reader:
        if not _alike(reader.read_header(), header_of(petsird, run, options, bins, extras)):
            raise PetacqError(f"{path}: its header is not that of the run")
        for block in reader.read_time_blocks():
            time = block.value.time_interval
            begin, end = int(time.start), int(time.stop)
            if not isinstance(block, petsird.TimeBlock.EventTimeBlock):
                other = next(others, None)
                if other is None or not _same(block, other[1]):
                    raise PetacqError(
                        f"{path}: {type(block).__name__} {begin} to {end} ms is not what the run has there"
                    )
                continue
            events = block.value
            interval = next(expected, None)
            if interval is None and not any(_lists(events.prompt_events, 2)) and begin == end:
                continue  # the empty block at the end
            if interval is None or (interval.begin_ms, interval.end_ms) != (begin, end):
                raise PetacqError(f"{path}: time block {begin} to {end} ms is not what the run has there")
            lists = [(_lists(events.prompt_events, 2), interval.prompts)]
            if options.delayeds and has_delayeds(run):
                lists.append((_lists(events.delayed_events, 2), interval.delayeds))
                report.delayeds += count_of(interval.delayeds)
            if bins.gamma_energy is not None:
                lists.append((_lists(events.triple_events, 3), interval.triples))
                report.triples += count_of(interval.triples)
            for found, of_run in lists:
                if len(found) != len(of_run) or not all(map(_is_same_list, found, of_run)):
                    raise PetacqError(f"{path}: the events of {begin} to {end} ms are not those of the run")
            report.prompts += count_of(interval.prompts)
    if next(expected, None) is not None or next(others, None) is not None:
        raise PetacqError(f"{path}: it ends before the run does")
    return report


def _lists(table: list[Any], photons: int, highest: int | None = None) -> list[list[Any]]:
    """Those of types of modules of which none is higher than the one before it. In 0.9.1 there are others, too, which are
    empty."""
    rows = table if highest is None else table[: highest + 1]
    if photons == 1:
        return rows
    return [events for of_type, row in enumerate(rows) for events in _lists(row, photons - 1, of_type)]


def _is_same_list(found: list[Any], of_run: Events) -> bool:
    if len(found) != of_run.count:
        return False
    return not found or bool(np.array_equal([_numbers(e) for e in found], np.concatenate(of_run.pieces, axis=1).T))


def _numbers(event: Any) -> list[int]:
    tof = event.tof_indices if hasattr(event, "tof_indices") else [event.tof_idx]
    return [*event.detection_bins, *tof]


#: Relative; the sums of doubles that numbers of 32 bits come from need not be in the same order.
_ROUNDING = 2e-6
_MS = 1_000_000  # ns


def _alike(found: Any, expected: Any) -> bool:
    """Whether two values of the package are the same, but for rounding."""
    if isinstance(found, list):
        if len(found) != len(expected):
            return False
        if found and isinstance(found[0], float):
            return bool(np.allclose(found, expected, _ROUNDING, 0))
        return all(map(_alike, found, expected))
    if isinstance(found, (float, np.floating)) or (isinstance(found, np.ndarray) and found.dtype.kind == "f"):
        return np.shape(found) == np.shape(expected) and bool(np.allclose(found, expected, _ROUNDING, _ROUNDING))
    if isinstance(found, np.ndarray):
        return bool(np.array_equal(found, expected))
    if hasattr(found, "numpy_value"):  # a time of day
        apart = np.asarray(found.numpy_value).astype(np.int64) - np.asarray(expected.numpy_value).astype(np.int64)
        return bool(abs(apart) <= _MS)
    if type(found).__module__.startswith("petsird.") and not isinstance(found, Enum):
        members = [key for key in vars(found) if not key.startswith("_")]
        return type(found) is type(expected) and all(_alike(getattr(found, k), getattr(expected, k)) for k in members)
    return bool(found == expected)


def _same(found: Any, expected: Any) -> bool:
    """Whether two time blocks say the same. May empty their fractions of pairs of modules: the package gives them back as
    arrays where it takes lists."""
    fractions: list[Any] = [getattr(block.value, "alive_time_fractions", None) for block in (found, expected)]
    if all(hasattr(of, "module_pair_alive_time_fractions") for of in fractions):
        pairs = [_plain(of.module_pair_alive_time_fractions) for of in fractions]
        if pairs[0] != pairs[1]:
            return False
        for of in fractions:
            of.module_pair_alive_time_fractions = []
    return bool(found == expected)


def _plain(values: Any) -> Any:
    return [_plain(value) for value in values] if isinstance(values, (list, np.ndarray)) else float(values)
