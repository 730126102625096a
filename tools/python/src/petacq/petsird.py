"""Writes a run as a PETSIRD file with the official package ``petsird``, and reads it back (``petacq-petsird``).

docs/reference/formats/petsird.md of petacqd says what goes where. Needs the package at version 0.9.1:
``pip install petacq[petsird]``.
"""

from __future__ import annotations

import argparse
import errno
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from petacq.errors import IncompleteWarning, PetacqError
from petacq.layout import DELAYED, PROMPT, Records
from petacq.petsird_header import Bins, Options, Report, bins_of, has_delayeds, header_of, not_held
from petacq.run import Run, open_run

PETSIRD_VERSION = "0.9.1"
DEFAULTS = Options()
_MOST_MS = (1 << 32) - 1


def package() -> Any:
    """The ``petsird`` package. Raises PetacqError if it is missing or of another version."""
    try:
        import petsird
    except ImportError as error:
        raise PetacqError(
            f"the package petsird is not installed: pip install petsird=={PETSIRD_VERSION} (or petacq[petsird])"
        ) from error
    found = version("petsird")
    if found != PETSIRD_VERSION:
        raise PetacqError(
            f"petsird {found} is installed, expected {PETSIRD_VERSION}: its versions do not read each other's files"
        )
    return petsird


def convert(
    run: Run,
    path: str | os.PathLike[str],
    options: Options = DEFAULTS,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Report:
    """Writes the run to ``path``, which must not exist yet. ``progress`` is called with (records done, all records).

    Raises PetacqError for what cannot be converted, OSError.
    """
    petsird = package()
    target = Path(path)
    if target.exists():
        raise FileExistsError(errno.EEXIST, "exists already", str(target))
    bins = bins_of(run, options)
    report = Report(not_held=not_held(run, options, bins))
    partial = target.with_name(f"{target.name}.partial-{os.getpid()}")
    try:
        with open(partial, "xb") as file:
            with petsird.BinaryPETSIRDWriter(file) as writer:
                writer.write_header(header_of(petsird, run, options, bins, report))
                writer.write_time_blocks(_time_blocks(petsird, run, options, bins, report, progress))
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            raise FileExistsError(errno.EEXIST, "exists already", str(target))
        partial.rename(target)
    finally:
        partial.unlink(missing_ok=True)
    return report


def compare(run: Run, path: str | os.PathLike[str], options: Options = DEFAULTS) -> Report:
    """Reads the file back with the package and compares it with the run event by event, time blocks included.
    Raises PetacqError at the first difference."""
    petsird = package()
    bins = bins_of(run, options)
    report = Report()
    expected = _intervals(run, bins)
    with open(path, "rb") as file, petsird.BinaryPETSIRDReader(file) as reader:
        header = reader.read_header()
        wanted = header_of(petsird, run, options, bins, Report())
        if header != wanted:
            raise PetacqError(f"{path}: its header is not that of the run")
        for block in reader.read_time_blocks():
            events = block.value
            begin, end = int(events.time_interval.start), int(events.time_interval.stop)
            interval = next(expected, None)
            if interval is None and not events.prompt_events[0][0] and begin == end:
                continue  # the empty block at the end
            if interval is None or interval.begin_ms != begin or interval.end_ms != end:
                raise PetacqError(f"{path}: time block {begin} to {end} ms is not what the run has there")
            lists = [(events.prompt_events, interval.prompts)]
            if options.delayeds and has_delayeds(run):
                lists.append((events.delayed_events, interval.delayeds))
            for found, table in lists:
                rows = [[*event.detection_bins, event.tof_idx] for event in found[0][0]]
                if not np.array_equal(np.array(rows, np.int64).reshape(-1, 3), table):
                    raise PetacqError(f"{path}: the events of {begin} to {end} ms are not those of the run")
            report.prompts += len(interval.prompts)
            report.delayeds += len(interval.delayeds)
    if next(expected, None) is not None:
        raise PetacqError(f"{path}: it ends before the run does")
    return report


# Events


@dataclass(frozen=True)
class _Interval:
    begin_ms: int
    end_ms: int
    prompts: npt.NDArray[np.int64]  # rows of detection bin a, detection bin b, TOF bin
    delayeds: npt.NDArray[np.int64]


def _intervals(
    run: Run, bins: Bins, progress: Callable[[int, int], None] = lambda done, total: None
) -> Iterator[_Interval]:
    """The whole run in time blocks, those without events included."""
    pairs = run.coincidences
    total = len(pairs)
    last_ticks = max(run.stop_ticks, pairs.last_time or 0)
    last = int(bins.block_of(np.array([last_ticks]))[0])
    if (last + 1) * bins.block_ms > _MOST_MS:
        raise PetacqError(f"the run is longer than the {_MOST_MS} ms that the format can count")
    current = 0
    waiting: list[Records] = []
    done = 0

    def finish(number: int) -> _Interval:
        records = np.concatenate(waiting) if waiting else np.empty(0, pairs.dtype)
        waiting.clear()
        rows = _rows(records, bins)
        begin = number * bins.block_ms
        delayed = records["kind"] == DELAYED
        return _Interval(begin, begin + bins.block_ms, rows[records["kind"] == PROMPT], rows[delayed])

    for block in pairs.blocks(verify=True):
        number = bins.block_of(block["time"])
        if number[0] < current:
            raise PetacqError("the run has records from before its start, or not in the order of time")
        for cut in np.split(np.arange(len(block)), np.flatnonzero(np.diff(number)) + 1):
            while current < number[cut[0]]:
                yield finish(current)
                current += 1
            waiting.append(block[cut[0] : cut[-1] + 1])
        done += len(block)
        progress(done, total)
    while current <= last:
        yield finish(current)
        current += 1


def _rows(records: Records, bins: Bins) -> npt.NDArray[np.int64]:
    if not len(records):
        return np.empty((0, 3), np.int64)
    crystals = len(bins.element)
    for name in ("crystal_a", "crystal_b"):
        if int(records[name].max()) >= crystals:
            raise PetacqError(f"a record has crystal {int(records[name].max())} of a scanner with {crystals}")
    if int(records["dt"].max()) > bins.window_ticks:
        raise PetacqError(f"a record has dt {int(records['dt'].max())} in a window of {bins.window_ticks} ticks")
    return np.column_stack(
        (
            bins.detection_bins(records["crystal_a"], records["energy_a"]),
            bins.detection_bins(records["crystal_b"], records["energy_b"]),
            bins.tof(records["dt"]),
        )
    )


def _time_blocks(
    petsird: Any, run: Run, options: Options, bins: Bins, report: Report, progress: Callable[[int, int], None]
) -> Iterator[Any]:
    with_delayeds = options.delayeds and has_delayeds(run)

    def block(begin: int, end: int, prompts: Sequence[Any], delayeds: Sequence[Any]) -> Any:
        return petsird.TimeBlock.EventTimeBlock(
            petsird.EventTimeBlock(
                time_interval=petsird.TimeInterval(start=begin, stop=end),
                prompt_events=[[prompts]],
                delayed_events=[[delayeds]] if with_delayeds else [],
            )
        )

    def events(rows: npt.NDArray[np.int64]) -> list[Any]:
        make = petsird.CoincidenceEvent
        return [make(detection_bins=[a, b], tof_idx=tof) for a, b, tof in rows.tolist()]

    end = 0
    for interval in _intervals(run, bins, progress):
        end = interval.end_ms
        report.prompts += len(interval.prompts)
        report.delayeds += len(interval.delayeds) if with_delayeds else 0
        delayeds = events(interval.delayeds) if with_delayeds else []
        yield block(interval.begin_ms, end, events(interval.prompts), delayeds)
    # STIR 6.5 returns an event only if another time block follows the block of the event.
    yield block(end, end, [], [])


# Command line


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        print(f"{self.prog}: {message}", file=sys.stderr)
        raise SystemExit(64)


def _at_least(least: float, kind: type[Any]) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        try:
            number = kind(text)
        except ValueError:
            number = None
        if number is None or not least <= number < 1e9:
            raise argparse.ArgumentTypeError(f"expected a number of at least {least:g}, found {text!r}")
        return number

    return parse


class _Progress:
    """A progress line; nothing if standard error is not a terminal."""

    def __init__(self) -> None:
        self._start = self._shown = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if not sys.stderr.isatty() or (done < total and now - self._shown < 0.2):
            return
        self._shown = now
        left = (now - self._start) * (total - done) / max(done, 1)
        text = f"{100 * done // total} %, {left:.0f} s left" if done < total else ""
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 success, 1 converted, but the run lacks records, 64 usage, 65 cannot be converted,
    74 I/O failure."""
    parser = _Parser(prog="petacq-petsird", description="Writes a run of petacqd as a PETSIRD file (petsird 0.9.1).")
    parser.add_argument("run", type=Path, help="directory of the run")
    parser.add_argument("output", type=Path, help="file to write; must not exist")
    parser.add_argument("--block-ms", type=_at_least(1, int), default=1, help="length of a time block (1)")
    parser.add_argument("--tof-bin-ticks", type=_at_least(0, int), default=1, help="width of a TOF bin (1); 0: no TOF")
    parser.add_argument("--energy-bins", type=_at_least(1, int), default=1, help="bins of the energy window (1)")
    parser.add_argument("--no-delayeds", action="store_true", help="leave delayed coincidences out")
    parser.add_argument("--tof-resolution-ps", type=_at_least(0, float), help="FWHM of the time difference of a pair")
    parser.add_argument("--energy-resolution", type=_at_least(0, float), help="FWHM / energy at 511 keV")
    parser.add_argument("--check", action="store_true", help="read the file back and compare every event")
    parser.add_argument("--quiet", action="store_true", help="do not say what the file does not hold")
    given = parser.parse_args(arguments)
    options = Options(
        block_ms=given.block_ms,
        tof_bin_ticks=given.tof_bin_ticks,
        energy_bins=given.energy_bins,
        delayeds=not given.no_delayeds,
        tof_resolution_ps=given.tof_resolution_ps,
        energy_resolution=given.energy_resolution,
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IncompleteWarning)  # reported below, with the rest
            run = open_run(given.run)
            report = convert(run, given.output, options, _Progress())
            if given.check:
                compare(run, given.output, options)
    except (PetacqError, KeyError) as error:
        print(f"petacq-petsird: {error}", file=sys.stderr)
        return 65
    except OSError as error:
        print(f"petacq-petsird: {error}", file=sys.stderr)
        return 74
    print(
        f"{given.output}: {report.prompts:,} prompts, {report.delayeds:,} delayeds{', checked' if given.check else ''}"
    )
    if not given.quiet:
        for what in report.not_held:
            print(f"not in the file as in the run: {what}", file=sys.stderr)
    return 0 if run.coincidences.complete else 1


if __name__ == "__main__":
    raise SystemExit(main())
