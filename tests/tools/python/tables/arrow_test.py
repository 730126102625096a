"""Records as Arrow tables and in Parquet files: the same numbers as in list-mode, copied once."""

import json
import sys
import unittest
from unittest import mock

import numpy as np
import support

import petacq

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
    WHY = ""
except ImportError as error:
    pa, WHY = None, str(error)

random = np.random.default_rng(20)


def file_of(name, dtype, blocks, kind):
    """A file with random records: every bit of theirs, but for times, which ascend."""
    records = np.frombuffer(random.bytes(sum(blocks) * dtype.itemsize), dtype).copy()
    records["time"] = np.sort(random.integers(0, 2**64, len(records), dtype=np.uint64))
    path = support.scratch() / name
    path.write_bytes(support.listmode(records.tobytes(), blocks, kind))
    return petacq.PlmFile(path), records


@unittest.skipIf(pa is None, WHY)
class Arrow(unittest.TestCase):
    def assert_same(self, table, records):
        self.assertEqual(table.num_rows, len(records))
        for name in table.column_names:
            chunks = [chunk for chunk in table.column(name).chunks if len(chunk)]
            self.assertEqual([chunk.null_count for chunk in chunks], [0] * len(chunks))
            while chunks and hasattr(chunks[0].type, "list_size"):
                chunks = [chunk.flatten() for chunk in chunks]
            found = b"".join(chunk.to_numpy().tobytes() for chunk in chunks)
            self.assertEqual(found, np.ascontiguousarray(records[name]).tobytes(), name)

    def test_every_kind_of_record(self):
        for kind, dtype in ((1, petacq.COINCIDENCE), (2, petacq.SINGLE), (3, petacq.TAG), (5, petacq.TRIPLE)):
            file, records = file_of(f"{kind}.plm", dtype, [300, 200, 1], kind)
            table = file.to_arrow()
            self.assertEqual(tuple(table.column_names), dtype.names)
            self.assert_same(table, records)
            self.assert_same(file.arrow_reader().read_all(), records)
        about = table.schema.metadata[b"petacq"].decode()
        self.assertEqual(about, '{"kind": "triples", "run_id": "small", "tick_ps": 15.625, "crystals": 2880}')
        self.assertEqual(table.schema.field("gamma_dt").type, pa.int32())

    def test_what_a_file_does_not_tell(self):
        unknown = [petacq.coverage.UNKNOWN_DT]
        path = support.scratch() / "imported.plm"
        path.write_bytes(support.listmode(bytes(2 * petacq.COINCIDENCE.itemsize), [2], coverage={"version": 1, "unknown": unknown}))
        kept = path.with_suffix(".parquet")
        for table in (petacq.PlmFile(path).to_arrow(), pq.read_table(petacq.PlmFile(path).to_parquet(kept))):
            self.assertEqual(json.loads(table.schema.metadata[b"petacq"])["unknown"], unknown)

    def test_columns(self):
        file, records = file_of("columns.plm", petacq.COINCIDENCE, [10, 7], 1)
        self.assertEqual(file.to_arrow(["energy_b", "time"]).column_names, ["energy_b", "time"])
        self.assert_same(file.arrow_reader(["kind"]).read_all(), records)
        with self.assertRaisesRegex(petacq.PlmError, "no column 'energy'"):
            file.to_arrow(["energy"])

    def test_a_table_is_one_copy(self):
        file, _ = file_of("copy.plm", petacq.COINCIDENCE, [100, 100], 1)
        made = {}
        column = petacq.PlmFile.column
        with mock.patch.object(petacq.PlmFile, "column", lambda file, name: made.setdefault(name, column(file, name))):
            table = file.to_arrow()
        for name, values in made.items():
            (chunk,) = table.column(name).chunks
            self.assertEqual(chunk.buffers()[1].address, values.ctypes.data, name)

    def test_a_reader_reads_a_block_when_it_is_asked_for(self):
        file, records = file_of("lazy.plm", petacq.SINGLE, [50, 60, 70], 2)
        with mock.patch.object(petacq.PlmFile, "block", autospec=True, side_effect=petacq.PlmFile.block) as block:
            reader = file.arrow_reader()
            self.assertEqual(block.call_count, 0)
            self.assertEqual(reader.read_next_batch().num_rows, 50)
            self.assertEqual(block.call_count, 1)
            self.assert_same(reader.read_all(), records[50:])

    def test_a_real_run(self):
        run = petacq.open_run(support.small_run())
        self.assert_same(run.coincidences.to_arrow(), run.coincidences.records())
        self.assert_same(run.seconds.to_arrow(), run.seconds.records())
        counts = run.seconds.to_arrow(["crystal_prompts"]).column(0)
        self.assertEqual(counts.type.list_size, run.scanner.crystal_count)
        path = run.seconds.to_parquet(support.scratch() / "seconds.parquet")
        found = petacq.read_parquet(path)
        self.assertEqual(found.dtype.names, run.seconds.dtype.names)
        for name in found.dtype.names:
            np.testing.assert_array_equal(found[name], run.seconds[name])

    def test_without_records(self):
        file, records = file_of("empty.plm", petacq.COINCIDENCE, [], 1)
        self.assert_same(file.to_arrow(), records)
        self.assertEqual(len(petacq.read_parquet(file.to_parquet(support.scratch() / "empty.parquet"))), 0)


@unittest.skipIf(pa is None, WHY)
class Parquet(unittest.TestCase):
    def test_every_bit_comes_back(self):
        for kind, dtype in ((1, petacq.COINCIDENCE), (2, petacq.SINGLE), (3, petacq.TAG), (5, petacq.TRIPLE)):
            file, records = file_of(f"bits-{kind}.plm", dtype, [300, 200, 1], kind)
            path = file.to_parquet(support.scratch() / f"bits-{kind}.parquet")
            found = petacq.read_parquet(path)
            self.assertEqual(found.dtype, dtype)
            self.assertEqual(found.tobytes(), records.tobytes())
        some = petacq.read_parquet(path, ["third", "time"])
        self.assertEqual(some.dtype.names, ("third", "time"))
        np.testing.assert_array_equal(some["third"], records["third"])

    def test_groups_of_rows(self):
        file, records = file_of("groups.plm", petacq.SINGLE, [100] * 7, 2)
        with mock.patch("petacq.arrow.parquet._ROWS_OF_GROUP", 250):
            path = file.to_parquet(support.scratch() / "groups.parquet")
        groups = pq.ParquetFile(path).metadata
        self.assertEqual([groups.row_group(i).num_rows for i in range(groups.num_row_groups)], [300, 300, 100])
        self.assertEqual(petacq.read_parquet(path).tobytes(), records.tobytes())

    def test_nothing_is_replaced_or_left(self):
        file, _ = file_of("whole.plm", petacq.SINGLE, [100, 100], 2)
        path = support.scratch() / "whole.parquet"
        block = petacq.PlmFile.block
        with mock.patch.object(petacq.PlmFile, "block", lambda file, i, verify=False: block(file, i) if i == 0 else 1 / 0):
            with self.assertRaises(ZeroDivisionError):
                file.to_parquet(path)
        self.assertEqual(list(support.scratch().glob("whole.parquet*")), [])
        file.to_parquet(path)
        before = path.read_bytes()
        with self.assertRaisesRegex(FileExistsError, "whole.parquet exists"):
            file.to_parquet(path)
        self.assertEqual(path.read_bytes(), before)

    def test_what_holds_no_records(self):
        path = support.scratch() / "other.parquet"
        path.write_text("no")
        with self.assertRaisesRegex(petacq.PetacqError, "other.parquet: expected a Parquet file"):
            petacq.read_parquet(path)
        pq.write_table(pa.table({"a": [1, None], "b": ["x", "y"], "c": [1, 2]}), path)
        with self.assertRaisesRegex(petacq.PetacqError, "no column 'd'; it has a, b, c"):
            petacq.read_parquet(path, ["d"])
        with self.assertRaisesRegex(petacq.PetacqError, "column 'b' is of type string: expected numbers"):
            petacq.read_parquet(path)
        with self.assertRaisesRegex(petacq.PetacqError, "column 'a' has rows without a number"):
            petacq.read_parquet(path, ["c", "a"])
        np.testing.assert_array_equal(petacq.read_parquet(path, ["c"])["c"], [1, 2])
        with self.assertRaises(FileNotFoundError):
            petacq.read_parquet(support.scratch() / "none.parquet")


class WithoutPyarrow(unittest.TestCase):
    def test_the_error_says_what_to_install(self):
        file, _ = file_of("without.plm", petacq.SINGLE, [1], 2)
        with mock.patch.dict(sys.modules, {"pyarrow": None}):
            for call in (file.to_arrow, file.arrow_reader, lambda: file.to_parquet("x"), lambda: petacq.read_parquet("x")):
                with self.assertRaisesRegex(ImportError, r"need pyarrow: .*pyarrow.*: install it \(pip install petacq\[arrow\]"):
                    call()


if __name__ == "__main__":
    unittest.main()
