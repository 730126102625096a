"""Compares the coincidences of petacqd with a slow reference, GATE's offline sorter and PETsys' rules, on a published set.

    tools/referee [--bin DIR] [--small] [--write] [--keep DIR] [--jobs N]
    tools/referee --set DIR

Prints the tables of docs/explanation/coincidence-rules.md, of one run.

--bin DIR   the directory of the programs; without it they are built
--small     only the small set, in a second
--write     also writes the tables into the page, and the sums of the set into tests/referee/sha256.json
--keep DIR  keeps captures, singles and results there
--jobs N    processes at once; default: the number of cores
--set DIR   only writes the set there: captures, singles with the truth, scanner, calibration, configuration

Exit status: 0 if all programs agree with the reference and every difference to the others has its cause, 1 if not, 64 for a wrong
command line. Without the package opengate, GATE's sorter is left out.
"""

import argparse
import itertools
import json
import os
import platform
import sys
import tempfile

import compare
import gate
import made_set
import tables
from programs import Programs
from rules import MODES, Single

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PAGE = os.path.join(ROOT, "docs", "explanation", "coincidence-rules.md")
SUMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sha256.json")
DIFFERENT, USAGE = 1, 64


def write_set(directory, scenes):
    """Writes the files of the scenes; returns what was made, and the sum of each file."""
    works = [compare.Work(scene, *made_set.write_scene(directory, scene)) for scene in scenes]
    names = [name for scene in scenes for name in made_set.files_of(scene)]
    return works, {name: made_set.sha256(os.path.join(directory, name)) for name in names}


def machine():
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores"


def with_gate(work, sorter, path, jobs):
    gate.write_singles(path, work.singles, made_set.GEOMETRY)
    rows = compare.in_processes(lambda *setting: compare.with_gate(work, sorter, path, *setting), compare.SETTINGS, jobs)
    sizes = [size for size in compare.CHUNKS if size < len(work.singles)]
    borders = list(itertools.product((True, False), compare.EXTREMES, sizes))
    chunks = compare.in_processes(lambda *setting: compare.at_chunk_borders(work, sorter, path, *setting), borders, jobs)
    return [[{"set": work.scene.name, **row} for row in of] for of in (rows, chunks)]


def referee(works, sums, programs, directory, jobs):
    """All tables, and whether everything agrees or has a cause."""
    result = {
        "machine": machine(), "python": platform.python_version(), "program": programs.version(), "sums": sums, "sets": [],
        "programs": [], "gate": [], "chunks": [], "petsys": [], "opengate": None}
    try:
        sorter, result["opengate"] = gate.load()
    except gate.Unavailable as why:
        print(f"GATE's sorter is left out: {why}", file=sys.stderr)
    good = True
    for work in works:
        singles = programs.singles(work.scene)
        same = [Single(*single) for single in singles] == work.singles
        good &= same
        result["sets"].append({"name": work.scene.name, "seed": work.scene.seed, "singles": len(work.singles), "same": same})
        rows = compare.in_processes(lambda *setting, work=work: compare.with_programs(work, programs, *setting), compare.SETTINGS, jobs)
        result["programs"] += [{"set": work.scene.name, **row} for row in rows]
        extremes = list(itertools.product(MODES, compare.EXTREMES))
        rows = compare.in_processes(lambda *setting, work=work: compare.with_petsys(work, *setting), extremes, jobs)
        result["petsys"] += [{"set": work.scene.name, **row} for row in rows]
        # The sorter does not say how it orders equal times.
        if result["opengate"] and work.scene.step == 1:
            gates, chunks = with_gate(work, sorter, os.path.join(directory, f"{work.scene.name}.root"), jobs)
            result["gate"] += gates
            result["chunks"] += chunks
    good &= all(row["different"] == 0 for row in result["programs"])
    good &= all(row["unexplained"] == 0 for row in result["gate"])
    for row in result["petsys"]:
        good &= row["only_ours"] == 0
        if (row["mode"], row["policy"]) == ("every", "TakeAllGoods"):
            good &= row["both"] == row["petsys"]
    return result, good


def main():
    parser = argparse.ArgumentParser(prog="tools/referee", add_help=False)
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("--bin")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--keep")
    parser.add_argument("--set")
    parser.error = lambda message: (print(f"tools/referee: {message}", file=sys.stderr), sys.exit(USAGE))
    options = parser.parse_args()
    if options.help:
        print(__doc__)
        return 0
    if options.small and options.write:
        parser.error("the tables of the page are those of all sets: --write or --small")
    scenes = [made_set.SMALL, made_set.EQUAL] + ([] if options.small else [made_set.LARGE])
    if options.set:
        os.makedirs(options.set, exist_ok=True)
        made_set.write_setup(options.set)
        _, sums = write_set(options.set, scenes)
        for name, value in sums.items():
            print(f"{value}  {name}")
        return 0
    if not options.bin:
        parser.error("expected --bin DIR, the directory of the programs")
    with tempfile.TemporaryDirectory() as temporary:
        directory = options.keep or temporary
        os.makedirs(directory, exist_ok=True)
        works, sums = write_set(directory, scenes)
        result, good = referee(works, sums, Programs(options.bin, directory), directory, options.jobs)
    text = tables.text_of(result)
    print(text)
    if options.write:
        with open(SUMS, "w", encoding="ascii") as file:
            json.dump(sums, file, indent=1)
            file.write("\n")
        tables.write(PAGE, text)
    print("all agree, or have a cause" if good else "DIFFERENCES WITHOUT A CAUSE", file=sys.stderr)
    return 0 if good else DIFFERENT


if __name__ == "__main__":
    sys.exit(main())
