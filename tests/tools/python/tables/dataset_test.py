"""A dataset of many runs: chosen by facts, with the records of all of them."""

import json
import shutil
import unittest
import warnings
from datetime import datetime, timezone
from unittest import mock

import numpy as np
import support

import petacq

try:
    import pyarrow as pa
    import pyarrow.dataset as pads
except ImportError:
    pa = None


def singles(count, crystal):
    records = np.zeros(count, petacq.SINGLE)
    records["time"] = 1000 + np.arange(count)
    records["crystal"], records["energy"] = crystal, 511.5
    return records


def put(data, name, count, hour, tick_ps=15.625, **operator):
    """A run whose singles all have the crystal ``hour``."""
    folder = data / name
    folder.mkdir(parents=True)
    anchor = {"ticks": 0, "unix_ns": int(datetime(2026, 11, 20, hour, tzinfo=timezone.utc).timestamp() * 1e9)}
    coverage = {"version": 1, "tick_ps": tick_ps, "intervals": [[0, 2000]], "anchor": anchor}
    document = {
        "run_id": name,
        "state": "complete",
        "coverage": coverage,
        "operator": operator,
        "scanner": {"name": "small"},
        "configuration": {"listmode": {"write_singles": True, "write_coincidences": False}},
        "ledger": {"closed": True, "saved_singles": {"found": count}},
    }
    (folder / "run.json").write_text(json.dumps(document), encoding="utf-8")
    listmode = support.listmode(singles(count, hour).tobytes(), [count // 2, count - count // 2], 2, run_id=name, tick_ps=tick_ps)
    (folder / "singles.plm").write_bytes(listmode)


class DatasetTest(unittest.TestCase):
    def setUp(self):
        self.data = support.scratch() / "dataset"
        shutil.rmtree(self.data, ignore_errors=True)
        put(self.data, "late", 30, 12, nuclide="F-18", subject="mouse 7", keys={"tracer": "FDG", "dose": "low"})
        put(self.data, "early", 20, 9, nuclide="F-18", subject="mouse 8", bed_mm=-5.0, keys={"tracer": "FLT"})
        put(self.data, "middle", 10, 10, nuclide="Sc-44", activity_MBq=3.5)

    def test_runs_are_chosen_by_facts(self):
        data = petacq.Dataset(self.data)

        def names(*test, **equal):
            return [run.id for run in data.where(*test, **equal).runs]

        self.assertEqual([run.id for run in data.runs], ["early", "middle", "late"])
        self.assertEqual([run.id for run in data], ["early", "middle", "late"])
        self.assertEqual(names(nuclide="F-18"), ["early", "late"])
        self.assertEqual(names(nuclide="F-18", subject="mouse 7"), ["late"])
        self.assertEqual(names(subject=("mouse 7", "mouse 8")), ["early", "late"])
        self.assertEqual(names(subject=None), ["middle"])
        self.assertEqual(names(keys={"tracer": "FDG"}), ["late"])
        self.assertEqual(names(keys={"tracer": {"FDG", "FLT"}}), ["early", "late"])
        self.assertEqual(names(lambda run: run["start"].hour >= 10), ["middle", "late"])
        self.assertEqual(names(lambda run: run["singles"] > 10, nuclide="F-18"), ["early", "late"])
        self.assertEqual(names(scanner="small", state="complete"), ["early", "middle", "late"])
        self.assertEqual(len(data.where(nuclide="Ga-68")), 0)
        with self.assertRaisesRegex(petacq.PetacqError, "'nucleide' is no fact of a run: expected one of id, path, state"):
            data.where(nucleide="F-18")
        facts = data.facts[1]
        self.assertEqual((facts["id"], facts["nuclide"], facts["activity_MBq"], facts["keys"]), ("middle", "Sc-44", 3.5, {}))
        self.assertEqual(petacq.Dataset(petacq.list_runs(self.data)[:1]).runs[0].id, "early")

    def test_a_run_that_cannot_be_read_has_facts(self):
        (self.data / "middle" / "run.json").write_text("{")
        data = petacq.Dataset(self.data)
        self.assertEqual([(f["id"], f["state"]) for f in data.facts if f["nuclide"] is None], [("middle", "unreadable")])
        self.assertEqual([run.id for run in data.where(state="complete").runs], ["early", "late"])

    def test_blocks(self):
        found = [(run.id, len(block), int(block["crystal"][0])) for run, block in petacq.Dataset(self.data).blocks("singles")]
        expected = [("early", 10, 9), ("early", 10, 9), ("middle", 5, 10), ("middle", 5, 10), ("late", 15, 12), ("late", 15, 12)]
        self.assertEqual(found, expected)

    def test_two_runs_of_one_name_are_refused(self):
        put(self.data / "other", "late", 2, 1)
        with self.assertRaisesRegex(petacq.RunError, "two runs of the name late: .*other/late and .*dataset/late"):
            petacq.Dataset([self.data, self.data / "other"])

    @unittest.skipIf(pa is None, "pyarrow is not installed")
    def test_one_table(self):
        data = petacq.Dataset(self.data)
        table = data.to_arrow("singles", ["crystal"])
        self.assertEqual(table.column_names, ["run", "crystal"])
        self.assertEqual(table.column("run").to_pylist(), ["early"] * 20 + ["middle"] * 10 + ["late"] * 30)
        self.assertEqual(table.column("crystal").to_pylist(), [9] * 20 + [10] * 10 + [12] * 30)
        self.assertEqual(data.arrow_reader("singles").schema.names, ["run", "time", "crystal", "energy"])
        self.assertNotIn("unknown", json.loads(table.schema.metadata[b"petacq"]))
        with mock.patch.object(petacq.PlmFile, "untold", ["the time of day"]):  # of each of the three
            about = json.loads(data.to_arrow("singles").schema.metadata[b"petacq"])
        self.assertEqual(about["unknown"], ["the time of day"])

    @unittest.skipIf(pa is None, "pyarrow is not installed")
    def test_runs_that_do_not_belong_together_are_refused(self):
        with self.assertRaisesRegex(petacq.RunError, "early: a run without coincidences"):
            petacq.Dataset(self.data).to_arrow()
        with self.assertRaisesRegex(petacq.PlmError, "no column 'dt'"):
            petacq.Dataset(self.data).to_arrow("singles", ["dt"])
        with self.assertRaisesRegex(petacq.RunError, "without runs"):
            petacq.Dataset([]).to_arrow()
        put(self.data, "other-scanner", 2, 23, tick_ps=10)
        with self.assertRaisesRegex(petacq.RunError, "other-scanner: has ticks of 10 ps, .* of 15.625 ps"):
            petacq.Dataset(self.data).arrow_reader("singles")

    @unittest.skipIf(pa is None, "pyarrow is not installed")
    def test_partitions(self):
        out = support.scratch() / "partitions"
        data = petacq.Dataset(self.data)
        self.assertEqual(len(data.where(nuclide="F-18").to_parquet(out, "singles")), 2)
        (new,) = data.to_parquet(out, "singles")
        self.assertEqual(new, out / "run=middle" / "singles.parquet")
        table = pads.dataset(out, partitioning="hive").to_table()
        counts = {run: table.column("run").to_pylist().count(run) for run in ("early", "middle", "late")}
        self.assertEqual(counts, {"early": 20, "middle": 10, "late": 30})
        self.assertEqual(petacq.read_parquet(new).tobytes(), singles(10, 10).tobytes())

    @unittest.skipIf(pa is None, "pyarrow is not installed")
    def test_partitions_hold_whole_runs(self):
        out = support.scratch() / "whole"
        data = petacq.Dataset(self.data)
        whole = self.data / "late" / "singles.plm"
        content = whole.read_bytes()
        whole.write_bytes(content[: 4096 + 64 + 15 * petacq.SINGLE.itemsize + 10])  # cut off within the second block
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", petacq.IncompleteWarning)
            with self.assertRaisesRegex(petacq.RunError, "late: lacks singles .*singles.plm.* expected all of them, or incomplete=True"):
                data.to_parquet(out, "singles")
            self.assertFalse(out.exists())  # nothing of the other runs either
            self.assertEqual(len(data.to_parquet(out, "singles", incomplete=True)), 3)
            self.assertEqual(data.to_parquet(out, "singles", incomplete=True), [])
        whole.write_bytes(content)
        with self.assertRaisesRegex(petacq.RunError, "run=late/singles.parquet: has 15 rows; expected 30, as .*late has; if you remove"):
            data.to_parquet(out, "singles")
        (out / "run=late" / "singles.parquet").unlink()
        self.assertEqual(data.to_parquet(out, "singles"), [out / "run=late" / "singles.parquet"])

    @unittest.skipIf(pa is None, "pyarrow is not installed")
    def test_a_run_that_is_running_becomes_no_partition(self):
        import fcntl

        document = self.data / "late" / "run.json"
        document.write_text(document.read_text().replace('"complete"', '"running"'))
        with open(self.data / "late" / ".reserve", "wb") as held:  # as the daemon holds it
            fcntl.flock(held, fcntl.LOCK_EX)
            with self.assertRaisesRegex(petacq.RunError, "late: is still running; expected runs that have ended, or incomplete=True"):
                petacq.Dataset(self.data).to_parquet(support.scratch() / "running", "singles")

    @unittest.skipIf(pa is None, "pyarrow is not installed")
    def test_partitions_with_other_columns_are_refused(self):
        out = support.scratch() / "columns"
        data = petacq.Dataset(self.data)
        data.to_parquet(out, "singles", ["time"])
        self.assertEqual(data.to_parquet(out, "singles", ["time"]), [])
        with self.assertRaisesRegex(petacq.RunError, r"has the columns time \(uint64\); expected time \(uint64\), crystal \(uint32\), energy"):
            data.to_parquet(out, "singles")
        (out / "run=early" / "singles.parquet").write_bytes(b"none")
        with self.assertRaisesRegex(petacq.PetacqError, "early/singles.parquet: expected a Parquet file"):
            data.to_parquet(out, "singles", ["time"])


if __name__ == "__main__":
    unittest.main()
