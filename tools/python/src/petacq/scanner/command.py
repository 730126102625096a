"""Makes a scanner description from the geometry in a file of another program (``petacq-geometry``)."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import numpy as np

from petacq.errors import PetacqError, ScannerError
from petacq.scanner.arranged_scanner import ArrangedScanner
from petacq.scanner.crystal_files import read_castor, read_stir_map
from petacq.scanner.describe_modules import Described, describe
from petacq.scanner.find_modules import Crystals, find_modules
from petacq.scanner.petsird_geometry import read_petsird

_OK, _USAGE, _BAD_INPUT, _IO = 0, 64, 65, 74
MATERIALS = ("BGO", "BaF2", "GAGG", "GSO", "LSO", "LYSO", "LaBr3", "LuAP", "NaI")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(_USAGE, f"{self.prog}: {message}\n")


def _lengths(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected lengths in mm, separated by commas, found {text!r}") from None


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e9:
        raise argparse.ArgumentTypeError(f"expected a number above 0, found {text!r}")
    return number


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="petacq-geometry", description=__doc__, allow_abbrev=False)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--castor", metavar="HSCAN", help="scanner of CASToR: a .hscan with its .lut beside it")
    source.add_argument("--stir-map", metavar="MAP", help="crystal map of STIR, as SAFIR list-mode takes it")
    source.add_argument("--petsird", metavar="FILE", help="PETSIRD file; needs the package petsird")
    parser.add_argument("--output", "-o", required=True, metavar="FILE", help="the description")
    parser.add_argument("--tick-ps", type=_positive, required=True, metavar="PS", help="picoseconds of a tick of its times")
    parser.add_argument("--name", help="name of the scanner; by default that in the file, or of the file")
    parser.add_argument("--length-mm", type=_lengths, metavar="L[,L...]", help="STIR: lengths of the crystals, by layer")
    parser.add_argument(
        "--depth-mm", type=_lengths, metavar="D[,D...]", help="STIR: from the front of a crystal to its point, by layer"
    )
    parser.add_argument("--gap-mm", type=_positive, metavar="G", help="crystals further apart are of different modules")
    parser.add_argument("--material", choices=MATERIALS, default="LYSO", help="where the file names none; LYSO by default")
    parser.add_argument("--numbers", metavar="CSV", help="writes the crystals' numbers in the file, beside their new ones")
    parser.add_argument("--force", action="store_true", help="replace existing files")
    return parser


def import_geometry(
    crystals: Crystals, materials: Sequence[str], name: str, tick_ps: float, gap_mm: float | None = None
) -> tuple[Described, float]:
    """The description, and the largest distance (mm) of its crystals from where the file has them. Raises ScannerError."""
    modules = find_modules(crystals, gap_mm)
    found = describe(name, tick_ps, modules, materials, crystals.tolerance_mm)
    places = ArrangedScanner(found.document).positions_mm()
    distance = float(np.linalg.norm(places - crystals.front_mm[found.crystals], axis=1).max())
    return found, distance


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.stir_map and (options.length_mm is None or options.depth_mm is None):
        parser.error("--stir-map: expected --length-mm and --depth-mm; the map has points alone")
    if not options.stir_map and (options.length_mm or options.depth_mm):
        parser.error("--length-mm, --depth-mm: expected with --stir-map; the other files have them")
    try:
        return _run(options)
    except PetacqError as error:
        print(f"petacq-geometry: {error}", file=sys.stderr)
        return _BAD_INPUT
    except OSError as error:
        print(f"petacq-geometry: {error}", file=sys.stderr)
        return _IO


def _run(options: argparse.Namespace) -> int:
    outputs = [Path(path) for path in (options.output, options.numbers) if path]
    for path in outputs:
        if path.exists() and not options.force:
            raise ScannerError(f"{path}: exists already; --force replaces it")
    materials = [options.material]
    name = ""
    if options.castor:
        crystals = read_castor(options.castor)
    elif options.stir_map:
        crystals = read_stir_map(options.stir_map, options.length_mm, options.depth_mm)
    else:
        crystals, named, name = read_petsird(options.petsird)
        materials = [material if material in MATERIALS else options.material for material in named]
    source = Path(options.castor or options.stir_map or options.petsird)
    found, distance = import_geometry(crystals, materials, options.name or name or source.stem, options.tick_ps, options.gap_mm)
    text = json.dumps(found.document, indent=4) + "\n"
    numbers = "crystal,number_in_file\n" + "".join(f"{k},{n}\n" for k, n in enumerate(found.crystals.tolist()))
    for path, content in zip(outputs, (text, numbers)):
        partial = path.with_name(f"{path.name}.partial-{os.getpid()}")
        try:
            partial.write_text(content, encoding="utf-8")
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    scanner = ArrangedScanner(found.document)
    print(
        f"{options.output}: {scanner.crystal_count} crystals in {len(scanner.arrangement.modules)} modules of "
        f"{len(scanner.arrangement.types)} types; no crystal is more than {distance:.2g} mm from its place in the file"
    )
    print("Not known from the file: BDMs and DUs (channel_map), which pairs are good (good_pairs), who sends (sources).")
    if options.castor or options.stir_map:
        print(f"Not known from the file: the material of the crystals; written as {options.material}.")
    if options.stir_map:
        print("Not known from the file: the sizes of crystals; written as the smallest distance of two neighbours.")
    return _OK


if __name__ == "__main__":
    raise SystemExit(main())
