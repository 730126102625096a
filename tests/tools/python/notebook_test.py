"""Runs the code of the example notebooks, one cell after the other, without Jupyter."""

import contextlib
import importlib.util
import io
import json
import os
import subprocess
import sys
import unittest
from unittest import mock

import support

import petacq

EXAMPLES = support.SOURCE / "tools" / "python" / "examples"
HAS_PICTURES = importlib.util.find_spec("matplotlib") is not None


def execute(name, **environment):
    """What its code prints, and its variables."""
    notebook = json.loads((EXAMPLES / name).read_text(encoding="utf-8"))
    names = {}
    out = io.StringIO()
    with mock.patch.dict(os.environ, {"MPLBACKEND": "Agg", **environment}), contextlib.redirect_stdout(out):
        for number, cell in enumerate(notebook["cells"]):
            if cell["cell_type"] == "code":
                exec(compile("".join(cell["source"]), f"{name} cell {number}", "exec"), names)
    return out.getvalue(), names


@contextlib.contextmanager
def busy_daemon(name):
    """A daemon that receives data until the end of the block. Gives the environment for the notebook."""
    with support.Daemon(name, tap={"socket": "tap.sock"}) as daemon:
        sender = subprocess.Popen(daemon.simulation(support.PATIENCE_S))
        try:
            yield daemon, {"PETACQ_SOCKET": str(daemon.socket)}
        finally:
            sender.terminate()
            sender.wait(support.PATIENCE_S)


class Notebooks(unittest.TestCase):
    def test_they_are_stored_without_output(self):
        for path in EXAMPLES.glob("*.ipynb"):
            notebook = json.loads(path.read_text(encoding="utf-8"))
            self.assertEqual(notebook["nbformat"], 4)
            for cell in notebook["cells"]:
                if cell["cell_type"] == "code":
                    self.assertEqual((cell["outputs"], cell["execution_count"]), ([], None), path.name)

    def test_each_is_run_here(self):
        code = (support.SOURCE / "tests/tools/python/notebook_test.py").read_text(encoding="utf-8")
        for path in EXAMPLES.glob("*.ipynb"):
            self.assertIn(f'execute("{path.name}"', code)
            self.assertIn(f"`{path.name}`", (support.SOURCE / "docs/how-to/python.md").read_text(encoding="utf-8"))

    def test_a_first_look(self):
        text, names = execute("first_look.ipynb", PETACQ_RUN=str(support.small_run()))
        self.assertIn("prompts", text)
        self.assertAlmostEqual(int(text.split("photopeak at ")[1].split()[0]), 511, delta=15)
        self.assertEqual(names["run"].id, "small")

    def test_rates(self):
        text, names = execute("rates.ipynb", PETACQ_RUN=str(support.small_run()))
        self.assertRegex(text, r"small complete 20\d\d-")
        self.assertRegex(text, r"prompts  +[\d,]+\.\d per second")
        self.assertAlmostEqual(float(text.split("mean energy in the photopeak: ")[1].split()[0]), 511, delta=10)
        expected = names["run"].ledger["pairs"]["prompts_found"] / names["rates"].length_s.sum()
        self.assertAlmostEqual(names["mean"](names["rates"].prompts) / expected, 1, places=6)

    def test_runs_as_tables(self):
        text, names = execute("runs_as_tables.ipynb", PETACQ_RUN=str(support.small_run()))
        self.assertRegex(text, r"small complete F-18 mouse <7> \d+\n")
        self.assertIn("1 of 1 runs are complete", text)
        self.assertAlmostEqual(int(text.split("energies of all runs near ")[1].split()[0]), 511, delta=15)
        if names["pyarrow"] is None:
            self.assertRegex(text, "no tables: .*pyarrow")
            return
        prompts = names["data"].facts[0]["prompts"]
        records = len(petacq.open_run(support.small_run()).coincidences)
        self.assertIn(f"{prompts:,} prompts of {records:,} records", text)
        self.assertIn(f"{records:,} records read back", text)

    def test_image(self):
        folder = support.scratch() / "look"
        support.call(
            *("petlm", "image", support.small_run(), "--output", folder, "--voxel-mm", 2, "--iterations", 2, "--subsets", 4),
            *("--backend", "cpu", "--depth-mm", 0),
        )
        text, names = execute("image.ipynb", PETACQ_IMAGE=str(folder))
        brightest = list(map(float, text.split("brightest at (")[1].split(")")[0].split(",")))
        for found, expected in zip(brightest, support.SOURCE_POINT_MM, strict=True):
            self.assertAlmostEqual(found, expected, delta=2.1)
        self.assertIn("no  normalisation: ", text)
        self.assertRegex(text, r"mean within 5 mm: [\d.e+]+ decays per voxel in \d+ voxels")
        self.assertEqual(names["figure"] is None, not HAS_PICTURES)
        self.assertIn("for looking, not quantification", names["image"]._repr_html_())

    def test_live(self):
        with busy_daemon("notebook") as (daemon, environment):
            text, _ = execute("live.ipynb", **environment)  # only looks
            self.assertIn("no run in progress", text)
            self.assertEqual(petacq.list_runs(daemon.data), [])
            text, names = execute("live.ipynb", PETACQ_START="1", **environment)
            self.assertIsNone(petacq.Daemon(daemon.socket).status()["run"])
        self.assertIn("ledger closed: True", text)
        self.assertGreaterEqual(len(names["records"]), 2000)
        self.assertAlmostEqual(int(text.split("photopeak at ")[1].split()[0]), 511, delta=15)
        self.assertEqual(names["run"].state, "complete")

    def test_live_when_nothing_answers_as_hoped(self):
        with support.Daemon("no-tap") as daemon:
            support.call("petctl", "start", "--run", "mine", env=daemon.env)
            text, _ = execute("live.ipynb", PETACQ_START="1", PETACQ_SOCKET=str(daemon.socket))
            self.assertIn("not started: run mine is in progress", text)
            self.assertIn("no records from the tap", text)
            self.assertEqual(petacq.Daemon(daemon.socket).status()["run"]["id"], "mine")

    @unittest.skipUnless(HAS_PICTURES, "matplotlib is not installed: the notebooks ran without their pictures")
    def test_pictures(self):
        for name in ("first_look.ipynb", "rates.ipynb"):
            _, names = execute(name, PETACQ_RUN=str(support.small_run()))
            self.assertTrue(all(axes.has_data() for axes in names["figure"].axes), name)


if __name__ == "__main__":
    unittest.main()
