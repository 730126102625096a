"""Makes list-mode of the records in a PETSIRD file or a file of GATE (``petacq-import``). ``petlm import`` writes it."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from petacq.errors import PetacqError, ScannerError
from petacq.foreign.gate import read_gate
from petacq.foreign.petsird import read_pairs
from petacq.foreign.records_file import ForeignRecords, write_records
from petacq.scanner.scanner import Scanner

_OK, _USAGE, _BAD_INPUT, _IO = 0, 64, 65, 74

# What is said of records whose file does not tell it: options of petlm import.
_DECLARED = (
    ("--window-ns", "NS", "coincidence window of the pairs"),
    ("--window-mode", "MODE", "how windows were opened"),
    ("--policy", "POLICY", "multiples policy"),
    ("--max-multiplicity", "N", "larger groups were dropped"),
    ("--min-module-difference", "N", "least number of modules apart, around the ring"),
    ("--max-ring-difference", "N", "largest number of rings apart"),
    ("--delayed-rule", "RULE", "how delayed pairs were found"),
    ("--lower-kev", "KEV", "energy window of the photons"),
    ("--upper-kev", "KEV", "energy window of the photons"),
    ("--duration-s", "S", "for how long the file measured"),
    ("--start-ticks", "N", "tick at which it began"),
    ("--start-utc", "TIME", "time of day then"),
    ("--nuclide", "NAME", "nuclide of the source"),
    ("--half-life-s", "S", "of a nuclide that is missing in the table"),
    ("--branching-ratio", "RATIO", "its positrons per decay"),
    ("--activity-mbq", "MBQ", "its activity at the time of the assay"),
    ("--assay", "TIME", "when the activity was measured"),
)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(_USAGE, f"{self.prog}: {message}\n")


def _positive(unit: str) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = 0.0
        if not 0 < number <= 1e9:
            raise argparse.ArgumentTypeError(f"expected {unit} above 0, found {text!r}")
        return number

    return parse


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="petacq-import", description=__doc__, allow_abbrev=False)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--petsird", metavar="FILE", help="PETSIRD file of the version of the package petsird")
    source.add_argument("--gate", metavar="FILE", help="singles or coincidences of GATE 9 or 10: ROOT (uproot) or HDF5 (h5py)")
    parser.add_argument("--output", "-o", required=True, metavar="OUT",
                        help="NAME.plm: a list-mode file; NAME.h5: what petlm import would read; otherwise the directory of a run")
    parser.add_argument("--scanner", metavar="FILE",
                        help="description of the scanner; PETSIRD: by default made of the crystals in the file")
    parser.add_argument("--tick-ps", type=_positive("picoseconds"), metavar="PS", help="PETSIRD without --scanner: picoseconds of a tick")
    parser.add_argument("--tree", help="GATE: name of the tree or group, if the file has several")
    parser.add_argument("--delayed", action="store_true", help="GATE: the coincidences are delayed ones")
    parser.add_argument("--delay-ns", type=_positive("nanoseconds"), metavar="NS",
                        help="delay of the delayed pairs; with --delayed it is subtracted from the times of the later photons")
    for name, metavar, what in _DECLARED:
        parser.add_argument(name, metavar=metavar, help=f"{what}, as petlm import takes it")
    parser.add_argument("--petlm", metavar="PROGRAM", help="by default that in PATH")
    parser.add_argument("--force", action="store_true", help="replace the output")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.gate and not options.scanner:
        parser.error("--gate: expected --scanner; the file does not tell where its crystals are")
    if options.gate and options.tick_ps:
        parser.error("--tick-ps: expected with --petsird; --scanner has the tick")
    if options.petsird and (options.tree or options.delayed):
        parser.error("--tree, --delayed: expected with --gate")
    if options.delay_ns and not (options.delayed or options.window_ns):
        parser.error("--delay-ns: expected with --delayed or --window-ns")
    if Path(options.output).suffix == ".h5" and (declared := _declared(options)):
        parser.error(f"{declared[0]}: expected with an output that petlm writes; petlm import --format hdf5 takes it, too")
    if options.petsird and bool(options.tick_ps) == bool(options.scanner):
        parser.error("--petsird: expected --tick-ps, or --scanner with a description of the same crystals")
    try:
        return _run(options)
    except PetacqError as error:
        print(f"petacq-import: {error}", file=sys.stderr)
        return _BAD_INPUT
    except OSError as error:
        print(f"petacq-import: {error}", file=sys.stderr)
        return _IO


def _run(options: argparse.Namespace) -> int:
    output = Path(options.output)
    if output.suffix == ".h5":
        if output.exists() and not options.force:
            raise PetacqError(f"{output}: exists already; --force replaces it")
        partial = output.with_name(output.name + ".partial")
        partial.unlink(missing_ok=True)
        try:
            count = write_records(partial, _records(options))
            partial.replace(output)
        finally:
            partial.unlink(missing_ok=True)
        print(f"{output}: {count} records")
        return _OK
    petlm = options.petlm or shutil.which("petlm")
    if not petlm:
        raise PetacqError("petlm was found nowhere in PATH; expected --petlm with the program, or an output NAME.h5")
    with tempfile.TemporaryDirectory(prefix="petacq-import-", dir=output.absolute().parent) as folder:
        file = Path(folder) / (Path(options.petsird or options.gate).name + ".h5")
        write_records(file, _records(options))
        command = [petlm, "import", "--format", "hdf5", str(file), "--output", str(output)]
        return subprocess.run(command + _declared(options) + ["--force"] * options.force, check=False).returncode


def _declared(options: argparse.Namespace) -> list[str]:
    """Options of petlm import. It is told of a delay only with its window."""
    given = [(name, getattr(options, name[2:].replace("-", "_"))) for name, *_ in _DECLARED]
    if options.window_ns and options.delay_ns:
        given.append(("--delay-ns", options.delay_ns))
    return [text for name, value in given if value is not None for text in (name, str(value))]


def _records(options: argparse.Namespace) -> ForeignRecords:
    description: Any = None
    if options.scanner:
        try:
            description = json.loads(Path(options.scanner).read_bytes())
        except ValueError as error:
            raise ScannerError(f"{options.scanner}: not JSON: {error}") from error
    if options.petsird:
        return read_pairs(options.petsird, options.tick_ps, None if description is None else Scanner.from_json(description))
    return read_gate(options.gate, description, options.tree, options.delayed, options.delay_ns or 0.0)


if __name__ == "__main__":
    raise SystemExit(main())
