"""Writes a run as a PETSIRD file, and reads it back with the official package ``petsird`` (``petacq-petsird``).

docs/reference/formats/petsird.md of petacqd says what goes where. The package writes schema, header and all but the
events, whose bytes are made here: it takes 10 us for each. Its version is that of the file: 0.12.0
(``pip install petacq[petsird]``) or 0.9.1.
"""

from __future__ import annotations

import argparse
import errno
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, TextIO

from petacq.errors import IncompleteWarning, PetacqError, UnknownWarning
from petacq.normalisation import Normalisation
from petacq.optional import petsird_package
from petacq.petsird_blocks import SIGNAL_TYPES, Extras, blocks, extras_of
from petacq.petsird_bytes import EventBlocks, EventBytes
from petacq.petsird_check import compare
from petacq.petsird_events import DEFAULTS, Interval, Options, bins_of, count_of, has_triples, intervals
from petacq.petsird_header import Report, has_delayeds, header_of, is_0_9, not_held
from petacq.run import Run, open_run

_WRITE_AT_ONCE = 1 << 20


def convert(
    run: Run,
    path: str | os.PathLike[str],
    options: Options = DEFAULTS,
    progress: Callable[[int, int], None] = lambda done, total: None,
    extras: Extras | None = None,
) -> Report:
    """Writes the run to ``path``, which must not exist yet. ``progress`` is called with (records done, all records).
    ``extras``: instead of what the run has beside coincidences.

    Raises PetacqError for what cannot be converted, OSError.
    """
    petsird = petsird_package()
    target = Path(path)
    if target.exists():
        raise FileExistsError(errno.EEXIST, "exists already", str(target))
    bins = bins_of(run, options)
    if extras is None:
        extras = extras_of(run, options, bins)
    report = Report(not_held=not_held(petsird, run, options, bins, extras))
    partial = target.with_name(f"{target.name}.partial-{os.getpid()}")
    try:
        with open(partial, "xb") as file:
            with petsird.BinaryPETSIRDWriter(file) as writer:
                writer.write_header(header_of(petsird, run, options, bins, extras, report))
                stream = _Stream(writer)
                others = blocks(petsird, extras, bins)
                parts = intervals(run, bins, EventBytes(bins), progress)
                with_delayeds = options.delayeds and has_delayeds(run)
                encode = EventBlocks(bins, with_delayeds, triangular=not is_0_9(petsird))
                writer.write_time_blocks(_time_blocks(stream, encode, parts, others, with_delayeds, report))
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            raise FileExistsError(errno.EEXIST, "exists already", str(target))
        partial.rename(target)
    finally:
        partial.unlink(missing_ok=True)
    return report


class _Stream:
    """Puts time blocks that are bytes already between those that the package writes."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer
        self._pieces: list[Any] = []
        self._bytes = 0

    def put(self, pieces: Sequence[Any]) -> None:
        self._pieces += pieces
        self._bytes += sum(map(len, pieces))
        if self._bytes >= _WRITE_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        self._writer._stream.write_bytes_directly(b"".join(self._pieces))
        self._pieces, self._bytes = [], 0


def _time_blocks(
    stream: _Stream,
    encode: EventBlocks,
    parts: Iterator[Interval],
    others: Iterator[tuple[int, Any]],
    with_delayeds: bool,
    report: Report,
) -> Iterator[Any]:
    """Puts the events into the stream, and yields the other time blocks where they belong between them."""
    other = next(others, None)
    end_ms = 0
    for interval in parts:
        end_ms = interval.end_ms
        while other is not None and other[0] < end_ms:
            stream.flush()
            yield other[1]
            other = next(others, None)
        stream.put(encode(interval.begin_ms, end_ms, interval.prompts, interval.delayeds, interval.triples))
        report.prompts += count_of(interval.prompts)
        report.delayeds += count_of(interval.delayeds) if with_delayeds else 0
        report.triples += count_of(interval.triples)
    while other is not None:
        stream.flush()
        yield other[1]
        other = next(others, None)
    # STIR 6.5 returns an event only if another time block follows the block of the event.
    stream.put(encode.empty(end_ms))
    stream.flush()


# Command line


def _say(text: str, file: TextIO) -> None:
    """Prints a line. Control characters and marks of direction, as a run.json or a path may have, are escaped."""
    print("".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text), file=file)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        _say(f"{self.prog}: {message}", sys.stderr)
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


def _signal(text: str) -> tuple[int, str]:
    channel, _, name = text.partition("=")
    if not channel.isdecimal() or int(channel) > 15 or name not in SIGNAL_TYPES:
        raise argparse.ArgumentTypeError(
            f"expected a channel from 0 to 15, = and one of {', '.join(SIGNAL_TYPES)}, found {text!r}"
        )
    return int(channel), name


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
    parser = _Parser(
        prog="petacq-petsird",
        description="Writes a run of petacqd as a PETSIRD file of the version of the package petsird, 0.12.0 or 0.9.1.",
    )
    parser.add_argument("run", type=Path, help="directory of the run")
    parser.add_argument("output", type=Path, help="file to write; must not exist")
    parser.add_argument("--block-ms", type=_at_least(1, int), default=1, help="length of a time block (1)")
    parser.add_argument("--tof-bin-ticks", type=_at_least(0, int), default=1, help="width of a TOF bin (1); 0: no TOF")
    parser.add_argument("--energy-bins", type=_at_least(1, int), default=1, help="bins of the energy window (1)")
    parser.add_argument("--no-delayeds", action="store_true", help="leave delayed coincidences out")
    parser.add_argument("--no-triples", action="store_true", help="leave triples out")
    parser.add_argument(
        "--only-events", action="store_true", help="leave out all but prompts and delayeds, as STIR needs it"
    )
    parser.add_argument(
        "--bed-channel", type=_at_least(0, int), help="channel of the tags with the position of the bed"
    )
    parser.add_argument(
        "--signal",
        type=_signal,
        action="append",
        default=[],
        metavar="CHANNEL=TYPE",
        help="the type in PETSIRD of the tags of a channel, such as 3=RESP_TRIGGER",
    )
    parser.add_argument("--tof-resolution-ps", type=_at_least(0, float), help="FWHM of the time difference of a pair")
    parser.add_argument("--energy-resolution", type=_at_least(0, float), help="FWHM / energy at 511 keV")
    parser.add_argument("--normalisation", type=Path, metavar="FILE", help="normalisation file: detection efficiencies")
    parser.add_argument("--check", action="store_true", help="read the file back and compare every event")
    parser.add_argument("--quiet", action="store_true", help="do not say what the file does not hold")
    given = parser.parse_args(arguments)
    options = Options(
        block_ms=given.block_ms,
        tof_bin_ticks=given.tof_bin_ticks,
        energy_bins=given.energy_bins,
        delayeds=not given.no_delayeds,
        triples=not given.no_triples,
        only_events=given.only_events,
        bed_channel=given.bed_channel,
        signal_types=tuple(given.signal),
        tof_resolution_ps=given.tof_resolution_ps,
        energy_resolution=given.energy_resolution,
    )
    try:
        with warnings.catch_warnings():
            for category in (IncompleteWarning, UnknownWarning):  # reported below, with the rest
                warnings.simplefilter("ignore", category)
            run = open_run(given.run)
            if given.normalisation is not None:
                options = replace(options, normalisation=Normalisation.load(given.normalisation, run.scanner))
            report = convert(run, given.output, options, _Progress())
            if given.check:
                compare(run, given.output, options)
    except (PetacqError, ImportError, KeyError) as error:
        _say(f"petacq-petsird: {error}", sys.stderr)
        return 65
    except OSError as error:
        _say(f"petacq-petsird: {error}", sys.stderr)
        return 74
    checked = ", checked" if given.check else ""
    triples = f", {report.triples:,} triples" if has_triples(run) else ""
    _say(f"{given.output}: {report.prompts:,} prompts, {report.delayeds:,} delayeds{triples}{checked}", sys.stdout)
    if not given.quiet:
        for what in report.not_held:
            _say(f"not in the file as in the run: {what}", sys.stderr)
    return 0 if run.coincidences.complete and (run.triples is None or run.triples.complete) else 1


if __name__ == "__main__":
    raise SystemExit(main())
