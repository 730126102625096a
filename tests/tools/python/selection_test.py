"""Masks, lists and DataFrames of list-mode, against NumPy on the same records in memory."""

import importlib.util
import sys
import unittest
from unittest import mock

import numpy as np
import support

import petacq

RNG = np.random.default_rng(11)
SIZES = [5, 1, 7, 7, 3]


def pairs(count):
    records = np.zeros(count, petacq.COINCIDENCE)
    records["time"] = np.arange(count) * 10
    records["crystal_a"] = RNG.integers(0, 2880, count)
    records["energy_a"] = RNG.uniform(350, 650, count)
    records["kind"] = RNG.integers(0, 2, count)
    return records


class Made(unittest.TestCase):
    def setUp(self):
        self.records = pairs(sum(SIZES))
        path = support.scratch() / f"{self.id()}.plm"
        path.write_bytes(support.listmode(self.records.tobytes(), SIZES))
        self.file = petacq.PlmFile(path)


class Selection(Made):
    def test_masks(self):
        masks = [self.records["kind"] == petacq.PROMPT, np.ones(23, bool), np.zeros(23, bool)]
        masks += [RNG.random(23) < part for part in (0.1, 0.5, 0.9)]
        masks += [np.arange(23) == i for i in range(23)]
        for mask in masks:
            np.testing.assert_array_equal(self.file[mask], self.records[mask])
            np.testing.assert_array_equal(self.file[mask.tolist()], self.records[mask])

    def test_a_mask_made_from_a_column(self):
        chosen = self.file[(self.file["kind"] == petacq.PROMPT) & (self.file["energy_a"] > 500)]
        wanted = self.records[(self.records["kind"] == petacq.PROMPT) & (self.records["energy_a"] > 500)]
        np.testing.assert_array_equal(chosen, wanted)

    def test_numbers_of_records(self):
        lists = [[7, 3], [0], [22, -1, -23, 0, 5, 5], []]
        lists += [RNG.integers(-23, 23, n).tolist() for n in (1, 5, 100)]
        for numbers in lists:
            np.testing.assert_array_equal(self.file[numbers], self.records[np.array(numbers, int)])
        for kind in ("u1", "i2", "u8"):
            numbers = np.array([3, 22, 0, 6], kind)
            np.testing.assert_array_equal(self.file[numbers], self.records[numbers])
        np.testing.assert_array_equal(self.file[np.flatnonzero(self.records["kind"])], self.records[self.records["kind"] == 1])

    def test_columns(self):
        for names in (["time", "energy_a"], ["energy_a", "time"], ["kind"], list(self.records.dtype.names)):
            chosen = self.file[names]
            self.assertEqual(chosen.dtype.names, tuple(names))
            self.assertEqual(chosen.dtype.itemsize, sum(self.records.dtype[name].itemsize for name in names))
            for name in names:
                np.testing.assert_array_equal(chosen[name], self.records[name])

    def test_without_records(self):
        path = support.scratch() / "none.plm"
        path.write_bytes(support.listmode(b"", []))
        file = petacq.PlmFile(path)
        self.assertEqual(len(file[np.zeros(0, bool)]), 0)
        self.assertEqual(len(file[["time", "kind"]]), 0)
        self.assertEqual(len(file[[]]), 0)

    def test_what_selects_nothing_that_there_is(self):
        for wrong, error, words in [
            (np.ones(22, bool), IndexError, "mask of 22 truth values for 23 records"),
            (np.ones(24, bool), IndexError, "24"),
            ([True], IndexError, "mask of 1"),
            (np.zeros(0, bool), IndexError, "mask of 0"),
            (np.ones((23, 1), bool), IndexError, "2 dimensions"),
            (np.array(True), IndexError, "0 dimensions"),
            ([[1, 2], [3, 4]], IndexError, "2 dimensions"),
            ([23], IndexError, "record 23 of 23"),
            ([0, -24], IndexError, "record -24 of 23"),
            (np.array([1 << 63], "u8"), IndexError, "of 23"),
            ("energy", petacq.PlmError, "no column 'energy': there are time, dt"),
            (["time", "energy"], petacq.PlmError, "no column 'energy'"),
            (["time", "time"], petacq.PlmError, "named twice"),
            ([1, [2]], TypeError, "list"),
            ([1.0], TypeError, "expected a number, a slice, a mask"),
            (np.array([0.0, np.nan]), TypeError, "ndarray"),
            ([None], TypeError, "expected"),
            (1.5, TypeError, "float"),
            (None, TypeError, "NoneType"),
            (True, TypeError, "bool"),
            ((1, 2), TypeError, "tuple"),
            ({"time"}, TypeError, "set"),
        ]:
            with self.subTest(wrong=wrong), self.assertRaisesRegex(error, words):
                self.file[wrong]

    def test_a_mask_reads_only_the_blocks_that_it_needs(self):
        read = []
        block = petacq.PlmFile.block

        def noting(file, number, verify=False):
            read.append(number)
            return block(file, number, verify)

        with mock.patch.object(petacq.PlmFile, "block", noting):
            self.file[np.isin(np.arange(23), [5, 20])]
            self.file[[22, 0, 21]]
        self.assertEqual(list(map(int, read)), [1, 4, 0, 4])

    def test_parts_of_a_run(self):
        files = []
        for number, (low, high) in enumerate([(0, 12), (12, 23)]):
            path = support.scratch() / f"part{number}.plm"
            path.write_bytes(support.listmode(self.records[low:high].tobytes(), [5, high - low - 5]))
            files.append(petacq.PlmFile(path))
        joined = petacq.PlmFiles(files)
        mask = self.records["kind"] == petacq.DELAYED
        np.testing.assert_array_equal(joined[mask], self.records[mask])
        np.testing.assert_array_equal(joined[[20, 1, 12]], self.records[[20, 1, 12]])
        np.testing.assert_array_equal(joined[["time"]]["time"], self.records["time"])

    def test_a_real_run(self):
        run = petacq.open_run(support.small_run())
        records = run.coincidences.records()
        mask = records["energy_a"] > 511
        np.testing.assert_array_equal(run.coincidences[mask], records[mask])
        seconds = run.seconds[["start", "module_prompts"]]
        np.testing.assert_array_equal(seconds["module_prompts"], run.seconds["module_prompts"])


@unittest.skipIf(importlib.util.find_spec("pandas") is None, "pandas is not installed")
class Pandas(Made):
    def test_a_frame(self):
        frame = self.file.to_pandas()
        self.assertEqual(list(frame.columns), list(self.records.dtype.names))
        self.assertEqual(len(frame), 23)
        for name in frame.columns:
            np.testing.assert_array_equal(frame[name].to_numpy(), self.records[name])
            self.assertEqual(frame[name].dtype, self.records.dtype[name])
        frame.loc[0, "time"] = 7  # its own memory
        self.assertEqual(list(self.file.to_pandas(["energy_a", "time"]).columns), ["energy_a", "time"])
        self.assertEqual(len(self.file.to_pandas([]).columns), 0)
        with self.assertRaisesRegex(petacq.PlmError, "no column 'energy'"):
            self.file.to_pandas(["energy"])

    def test_a_mask_of_pandas(self):
        frame = self.file.to_pandas()
        np.testing.assert_array_equal(self.file[frame["kind"] == 1], self.records[self.records["kind"] == 1])

    def test_seconds(self):
        run = petacq.open_run(support.small_run())
        frame = run.seconds.to_pandas()
        self.assertIn("prompts", frame.columns)
        self.assertNotIn("module_prompts", frame.columns)
        self.assertEqual(int(frame["prompts"].sum()), run.ledger["singles"]["prompts"])
        with self.assertRaisesRegex(petacq.PlmError, "module_prompts.*for each record"):
            run.seconds.to_pandas(["module_prompts"])
        rates = run.rates().to_pandas()
        np.testing.assert_array_equal(rates["prompts"], run.rates().prompts)
        self.assertEqual(rates.index.name, "start_s")


class WithoutPandas(unittest.TestCase):
    def test_the_error_says_what_to_install(self):
        run = petacq.open_run(support.small_run())
        with mock.patch.dict(sys.modules, {"pandas": None}):
            for frame in (run.coincidences.to_pandas, run.rates().to_pandas):
                with self.assertRaisesRegex(ImportError, r"pip install petacq\[pandas\]"):
                    frame()


if __name__ == "__main__":
    unittest.main()
