"""h5py and NumPy alone read what ``petlm export --format hdf5`` writes: every record as ``petlm dump`` prints it."""

import json
import re
import subprocess
import sys
import unittest

import numpy as np
import support

import petacq

try:
    import h5py
except ImportError as error:
    raise unittest.SkipTest("h5py is not installed (python3-h5py)") from error

NUMBERS = {"prompt": 0, "delayed": 1}
THIRDS = {"coincident": 0, "delayed": 1}


def dumped(path):
    """The columns that petlm dump prints, as floats, which hold all of these numbers exactly."""
    head, *lines = support.call("petlm", "dump", path).splitlines()
    columns = zip(*(line.split(",") for line in lines))
    return {name: np.array([float(NUMBERS.get(text, text)) for text in texts]) for name, texts in zip(head.split(","), columns)}


class Hdf5(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_ = support.small_run()
        cls.path = support.scratch() / "run.h5"
        support.call("petlm", "export", "--format", "hdf5", cls.run_, "--output", cls.path)

    def same(self, group, expected):
        self.assertGreater(len(expected["time"]), 1000)
        self.assertEqual(set(group), set(expected))
        for name, numbers in expected.items():
            # petlm dump prints enough digits to restore each float exactly.
            np.testing.assert_array_equal(group[name][:], numbers.astype(group[name].dtype), name)
            self.assertTrue(group[name].attrs["units"], name)

    def test_coincidences(self):
        expected = dumped(self.run_ / "coincidences.plm")
        pairs = json.loads((self.run_ / "run.json").read_text())["ledger"]["pairs"]
        with h5py.File(self.path) as file:
            self.same(file["coincidences"], expected)
            kinds = file["coincidences/kind"][:]
            self.assertEqual((kinds == 0).sum(), pairs["prompts_found"])
            self.assertEqual((kinds == 1).sum(), pairs["delayeds_found"])
            self.assertEqual(h5py.check_enum_dtype(file["coincidences/kind"].dtype), NUMBERS)

    def test_singles(self):
        path = support.scratch() / "singles.h5"
        support.call("petlm", "export", "--format", "hdf5", self.run_ / "singles.plm", "--output", path)
        with h5py.File(path) as file:
            self.same(file["singles"], dumped(self.run_ / "singles.plm"))

    def test_triples_and_their_lines(self):
        rng = np.random.default_rng(8)
        triples = np.zeros(2000, petacq.TRIPLE)
        triples["time"] = np.arange(2000) * 1000
        for name, most in (("dt", 300), ("crystal_a", 2880), ("crystal_b", 2880), ("kind", 2), ("gamma_crystal", 2880), ("third", 2)):
            triples[name] = rng.integers(0, most, 2000)
        triples["gamma_dt"] = rng.integers(-5000, 5000, 2000)
        for name in ("energy_a", "energy_b", "gamma_energy"):
            triples[name] = rng.uniform(400, 1300, 2000)
        triples.sort(order=["time"])
        source, path, lines = (support.scratch() / f"triples.{end}" for end in ("plm", "h5", "csv"))
        source.write_bytes(support.listmode(triples.tobytes(), [1500, 500], kind=5))
        support.call("petlm", "export", "--format", "hdf5", source, "--output", path)
        with h5py.File(path) as file:
            group = file["triples"]
            self.assertEqual(set(group), set(petacq.TRIPLE.names))
            for name in petacq.TRIPLE.names:
                np.testing.assert_array_equal(group[name][:], triples[name], name)
                self.assertTrue(group[name].attrs["units"], name)
            self.assertEqual(h5py.check_enum_dtype(group["third"].dtype), THIRDS)
        support.call("petlm", "export", "--format", "csv", source, "--output", lines)
        text = lines.read_text()
        self.assertEqual(text, support.call("petlm", "dump", source))
        columns = dict(zip(text.splitlines()[0].split(","), zip(*(line.split(",") for line in text.splitlines()[1:]))))
        self.assertEqual([THIRDS[word] for word in columns["gamma"]], triples["third"].tolist())
        for name in ("gamma_dt", "gamma_crystal", "gamma_energy"):
            np.testing.assert_array_equal(np.array(columns[name], "f4"), triples[name].astype("f4"), name)

    def test_the_run_the_seconds_and_what_the_operator_said(self):
        document = json.loads((self.run_ / "run.json").read_text())
        with h5py.File(self.path) as file:
            self.assertEqual(json.loads(file["run_json"][()]), document)
            self.assertEqual(file["seconds/prompts"][:].sum(), document["ledger"]["pairs"]["prompts_found"])
            self.assertEqual(file["seconds/crystal_prompts"].shape[1], 2880)
            self.assertEqual(str(file["operator"].attrs["nuclide"]), "F-18")
            self.assertEqual(str(file["operator/keys"].attrs["tracer"]), "FDG")
            self.assertEqual((file.attrs["run_id"], file.attrs["crystals"], file.attrs["tick_ps"]), ("small", 2880, 15.625))

    def test_the_example_of_the_page(self):
        page = (support.SOURCE / "docs/reference/formats/hdf5.md").read_text(encoding="utf-8")
        (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
        here = support.scratch() / "example"
        here.mkdir()
        (here / "flood.h5").symlink_to(self.path)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=here, timeout=support.PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^small \(24, 120\) [\d.]+ prompts per second$")


if __name__ == "__main__":
    unittest.main()
