"""Has petlm write a run as a PETSIRD file, and reads it back with the official package ``petsird`` (``petacq-petsird``).

docs/reference/formats/petsird.md of petacqd says what goes where. The version of the package is that of the file: 0.12.0
(``pip install petacq[petsird]``) or 0.9.1.
"""

from __future__ import annotations

import argparse
import errno
import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TextIO

from petacq.errors import IncompleteWarning, PetacqError, UnknownWarning
from petacq.optional import petsird_package
from petacq.petsird_blocks import SIGNAL_TYPES
from petacq.petsird_check import compare
from petacq.petsird_events import DEFAULTS, Options, has_triples
from petacq.petsird_header import is_0_9
from petacq.run import Run, open_run

_IO = 74


@dataclass
class Report:
    """The contents of the file, and what it lacks."""

    prompts: int = 0
    delayeds: int = 0
    triples: int = 0
    not_held: list[str] = field(default_factory=list)


def convert(
    run: Run, path: str | os.PathLike[str], options: Options = DEFAULTS, petlm: str | os.PathLike[str] | None = None
) -> Report:
    """Has ``petlm`` (by default that in ``PATH``) write the run to ``path``, which must not exist yet.

    Raises PetacqError for what cannot be converted, OSError.
    """
    target = Path(path)
    if target.exists():
        raise FileExistsError(errno.EEXIST, "exists already", str(target))
    program = petlm or shutil.which("petlm")
    if not program:
        raise PetacqError("petlm was found nowhere in PATH; expected --petlm with the program")
    version = "0.9.1" if is_0_9(petsird_package()) else "0.12.0"
    # The description of an earlier file, which is gone, may be there.
    command = [program, "export", "--format", "petsird", run.path, "--output", target, "--petsird-version", version, "--force"]
    done = subprocess.run([*map(str, command), *_arguments(options)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = done.stderr.strip().removeprefix("petlm: ")
        raise OSError(said) if done.returncode == _IO else PetacqError(said)
    counts = {name: int(count) for count, name in re.findall(r"(\d+) (prompts|delayeds|triples)", done.stdout)}
    return Report(**counts, not_held=re.findall(r"^petlm: (?:petsird: )?(.*)$", done.stderr, re.MULTILINE))


def _arguments(options: Options) -> list[str]:
    out = [f"--block-ms={options.block_ms}", f"--tof-bin-ticks={options.tof_bin_ticks}", f"--energy-bins={options.energy_bins}"]
    flags = {"--no-delayeds": not options.delayeds, "--no-triples": not options.triples, "--only-events": options.only_events}
    out += [name for name, given in flags.items() if given]
    values = {
        "--tof-resolution-ps": options.tof_resolution_ps,
        "--energy-resolution": options.energy_resolution,
        "--bed-channel": options.bed_channel,
        "--normalisation": options.normalisation,
    }
    out += [f"{name}={value}" for name, value in values.items() if value is not None]
    return out + [f"--signal={channel}={name}" for channel, name in options.signal_types]


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 success, 64 usage, 65 cannot be converted, 74 I/O failure."""
    parser = _Parser(
        prog="petacq-petsird",
        description="Has petlm write a run of petacqd as a PETSIRD file of the version of the package petsird, 0.12.0 or 0.9.1.",
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
    parser.add_argument("--petlm", metavar="PROGRAM", help="by default that in PATH")
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
        normalisation=given.normalisation,
    )
    try:
        with warnings.catch_warnings():
            for category in (IncompleteWarning, UnknownWarning):  # reported below, with the rest
                warnings.simplefilter("ignore", category)
            run = open_run(given.run)
            report = convert(run, given.output, options, given.petlm)
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
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
