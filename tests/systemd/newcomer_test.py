#!/usr/bin/env python3
"""A newcomer in a clean system, who knows docs/tutorials/first-run.md and nothing else.

newcomer_test.py ROOT PACKAGE.deb WHEEL FIRST-RUN.md

ROOT as for operator_test.py. Runs all commands of the page as they stand there, in one shell of a user who may use sudo;
a command that fails fails the test. Then the run must be whole and the image must show what was simulated. Needs root.
"""

import array
import json
import math
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from machine import Failure, check, patience, skip_unless_possible  # noqa: E402
from person import clean_machine, code_blocks  # noqa: E402

root, package, wheel, page = (pathlib.Path(argument).resolve() for argument in sys.argv[1:5])
skip_unless_possible(root / "lib/systemd/systemd")


def script():
    """The page as one script: without the compilation, which was done before."""
    text = "".join(code_blocks(page.read_text(encoding="utf-8")))
    text, compilations = re.subn(r"^tools/package .*\n", "", text, flags=re.M)
    check(compilations == 1, "the page compiles once")
    return text


def points():
    """The points that the page simulates: position in mm, activity in MBq."""
    return [[float(number) for number in point.split(",")] for point in re.findall(r"--point (\S+)", page.read_text(encoding="utf-8"))]


class Image:
    def __init__(self, file):
        """Reads NIfTI-1 with 32-bit floats."""
        data = file.read_bytes()
        self.n = struct.unpack_from("<3h", data, 42)
        self.mm = struct.unpack_from("<f", data, 80)[0]
        self.values = array.array("f", data[int(struct.unpack_from("<f", data, 108)[0]):])
        assert len(self.values) == math.prod(self.n)

    def near(self, point, radius_mm):
        """The values around a point, with their positions."""
        for index, value in enumerate(self.values):
            voxel = index % self.n[0], index // self.n[0] % self.n[1], index // self.n[0] // self.n[1]
            at = [(i - (n - 1) / 2) * self.mm for i, n in zip(voxel, self.n)]
            if math.dist(at, point) < radius_mm:
                yield value, at


def the_tests(machine):
    machine.wait_until_up()
    machine.path("/home/alice/page.sh").write_text(script(), encoding="utf-8")
    with open(machine.path("/home/alice/said"), "w+", encoding="utf-8") as said:
        done = subprocess.run(machine.enter("runuser", "-l", "alice", "-c", "bash -ev page.sh"), stdin=subprocess.DEVNULL,
                              stdout=said, stderr=said, timeout=patience * 4, check=False)
        said.seek(0)
        print(said.read())
    check(done.returncode == 0, "every command of the page succeeds")

    first = machine.path("/home/alice/first")
    run = json.loads((first / "data/first/run.json").read_text(encoding="utf-8"))
    prompts = run["ledger"]["pairs"]["prompts_found"]
    told = int(re.search(r"coincidences were found,\s+about ([\d,]+)", page.read_text(encoding="utf-8")).group(1).replace(",", ""))
    check(run["state"] == "complete" and abs(prompts / told - 1) < 0.02, f"a whole run, with as many prompts as the page says: {prompts}")
    check((first / "data/first/plot/report.html").exists(), "a report")

    image = Image(first / "image/image.nii")
    body = max(value for value, _ in image.near((0, -8, 0), 3))
    hottest = []
    for *point, _ in points():
        value, at = max(image.near(point, 5))
        check(math.dist(at, point) < 1.5 * image.mm, f"the point at {point} is seen at {at}")
        check(value > 5 * body, f"and is hot: {value:.0f}, its surroundings {body:.0f}")
        hottest.append(value)
    check(max(image.values) == hottest[0] > hottest[1], "nothing is hotter than the stronger point")


with tempfile.TemporaryDirectory(prefix="petacq-newcomer-") as directory:
    newcomer = clean_machine(pathlib.Path(directory), root, package, wheel)
    try:
        the_tests(newcomer)
    except Failure as failure:
        print(f"FAILED: {failure}")
        newcomer.explain()
        sys.exit(1)
    finally:
        newcomer.end()
print("all well")
