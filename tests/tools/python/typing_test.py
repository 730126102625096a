"""The module is typed: mypy --strict finds nothing in it, and knows the types in a program that uses it."""

import importlib.util
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

import support

if importlib.util.find_spec("mypy") is None:
    raise unittest.SkipTest("mypy is not installed (python3-mypy)")

PACKAGE = support.SOURCE / "tools" / "python"
PROGRAM = """
from datetime import datetime
from pathlib import Path
import petacq
from petacq import histograms

run: petacq.Run = petacq.open_run("data/first")
pairs = run.coincidences
energies = pairs[pairs["kind"] == petacq.PROMPT][["energy_a"]]
pairs[7]["time"], pairs[[1, 2]], pairs[["time", "dt"]], pairs[::2], pairs.to_pandas()
rate: float = float(run.rates().prompts.mean())
starts: list[datetime | None] = [run.start for run in petacq.list_runs("data")]
spectrum = histograms.energy_spectrum(pairs).centres
daemon = petacq.Daemon(timeout_s=3)
for status in daemon.subscribe(0.5):
    print(status["state"])
for records in petacq.tap(kind="singles", prescale=10, one_run=True):
    print(records["energy"].mean())
data = petacq.Dataset("data").where(lambda run: run["prompts"], state="complete")
counts: list[int] = [len(block) for run, block in data.blocks("singles")]
path: Path = pairs.to_parquet("pairs.parquet", ["time"])
times = petacq.read_parquet(path)["time"]
largest: float = float(petacq.open_image("look").frame(0).values.max())
async def watch(tap: petacq.Tap) -> int:
    return sum([len(records) async for records in tap])
wrong: int = status
data.blocks("pairs")
daemon.start(run=7)
petacq.tap(kind="tags")
"""


class Typed(unittest.TestCase):
    def test_the_module_and_a_program_that_uses_it(self):
        program = support.scratch() / "program.py"
        program.write_text(PROGRAM, encoding="utf-8")
        # What mypy knows of NumPy is kept between runs: it takes most of the time.
        cache = Path(os.environ["PETACQ_BIN"]).parent / "mypy" if "PETACQ_BIN" in os.environ else support.scratch()
        options = ["--config-file", "pyproject.toml", "--cache-dir", str(cache), "--show-error-codes", "--no-error-summary"]
        command = [sys.executable, "-m", "mypy", *options, "src/petacq", str(program)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=PACKAGE, timeout=500)
        # Versions of mypy differ in wording and order.
        said = re.findall(r"^(.+?):(\d+): error: .*\[([\w-]+)\]$", done.stdout, re.MULTILINE)
        lines = PROGRAM.splitlines()
        found = {(lines[int(line) - 1] if Path(file).name == program.name else file, code) for file, line, code in said}
        expected = {
            ("wrong: int = status", "assignment"),
            ("daemon.start(run=7)", "arg-type"),
            ('petacq.tap(kind="tags")', "arg-type"),
            ('data.blocks("pairs")', "arg-type"),
        }
        self.assertEqual(found, expected, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
