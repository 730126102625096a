import importlib.util
import json
import random
import unittest
import warnings

import numpy as np
import support

import petacq

RNG = np.random.default_rng(5)


def pairs(count, step=50):
    records = np.zeros(count, petacq.COINCIDENCE)
    records["time"] = np.cumsum(RNG.integers(0, step, count))
    records["dt"] = RNG.integers(0, 320, count)
    records["crystal_a"] = RNG.integers(0, 2880, count)
    records["crystal_b"] = RNG.integers(0, 2880, count)
    records["energy_a"] = RNG.uniform(350, 650, count)
    records["energy_b"] = RNG.uniform(350, 650, count)
    records["kind"] = RNG.integers(0, 2, count)
    return records


def put(name, content):
    path = support.scratch() / name
    path.unlink(missing_ok=True)  # never into a file that is still mapped
    path.write_bytes(content)
    return path


def open_quietly(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", petacq.IncompleteWarning)
        return petacq.PlmFile(path)


class Reading(unittest.TestCase):
    def setUp(self):
        sizes = [5, 1, 7, 7, 3]
        self.records = pairs(sum(sizes))
        self.bytes = support.listmode(self.records.tobytes(), sizes, window_ticks=320)
        self.path = put("reading.plm", self.bytes)
        self.file = petacq.PlmFile(self.path, verify=True)

    def test_the_other_writer_and_petlm_agree(self):
        support.call("petlm", "verify", self.path)

    def test_what_a_file_says(self):
        self.assertEqual((self.file.kind, len(self.file), self.file.block_count), ("coincidences", 23, 5))
        self.assertTrue(self.file.complete)
        self.assertEqual(self.file.missing, ())
        self.assertIsNone(self.file.warning)
        self.assertEqual(self.file.description["window_ticks"], 320)
        self.assertEqual(self.file.tick_ps, 15.625)
        self.assertEqual(self.file.first_time, self.records["time"][0])
        self.assertEqual(self.file.last_time, self.records["time"][-1])
        self.assertEqual(self.file.payload_crc, support.crc32c(self.records.tobytes()))

    def test_blocks_are_views_of_the_file(self):
        for block in self.file.blocks():
            self.assertFalse(block.flags.owndata)
            self.assertFalse(block.flags.writeable)
            self.assertTrue(np.shares_memory(block, self.file._bytes))
        np.testing.assert_array_equal(np.concatenate(list(self.file.blocks(verify=True))), self.records)

    def test_records_columns_and_iteration_are_the_same_records(self):
        np.testing.assert_array_equal(self.file.records(), self.records)
        self.assertTrue(self.file.records().flags.writeable)
        columns = self.file.columns()
        self.assertEqual(list(columns), list(self.records.dtype.names))
        for name in columns:
            np.testing.assert_array_equal(columns[name], self.records[name])
            np.testing.assert_array_equal(self.file[name], self.records[name])
        self.assertEqual([tuple(r) for r in self.file], [tuple(r) for r in self.records])

    def test_index(self):
        for i in range(-23, 23):
            self.assertEqual(self.file[i], self.records[i])
        for i in (23, -24, 1000):
            with self.assertRaises(IndexError):
                self.file[i]
        with self.assertRaises(petacq.PlmError):
            self.file["energy"]

    def test_every_slice(self):
        places = [None, -30, -23, -10, -1, 0, 4, 5, 6, 13, 20, 22, 23, 40]
        for start in places:
            for stop in places:
                for step in (None, 1, 2, 3, 9, -1, -2, -7):
                    wanted = slice(start, stop, step)
                    np.testing.assert_array_equal(self.file[wanted], self.records[wanted], str(wanted))
        self.assertFalse(self.file[6:12].flags.owndata)
        self.assertTrue(self.file[4:12].flags.owndata)

    def test_between_and_find(self):
        times = self.records["time"].astype(object)
        edges = sorted({0, 1, 1 << 63, (1 << 64) - 1, 1 << 64, 1 << 70, -5, *times, *(times + 1)})
        for begin in edges:
            for end in edges:
                wanted = self.records[(times >= begin) & (times < end)]
                found = list(self.file.between(begin, end))
                for part in found:
                    self.assertFalse(part.flags.owndata)
                    self.assertGreater(len(part), 0)
                np.testing.assert_array_equal(np.concatenate([self.file[:0], *found]), wanted)
                np.testing.assert_array_equal(self.file[self.file.find(begin, end)], wanted)

    def test_equal_times_across_blocks(self):
        records = pairs(12, step=1)
        file = petacq.PlmFile(put("equal.plm", support.listmode(records.tobytes(), [3] * 4)))
        self.assertEqual(sum(map(len, file.between(0, 1))), 12)
        self.assertEqual(file.find(0, 1), slice(0, 12))
        self.assertEqual(list(file.between(1, 2)), [])

    def test_singles_and_files_without_records(self):
        singles = np.array([(1, 7, 500.5), (9, 8, 20.25)], petacq.SINGLE)
        file = petacq.PlmFile(put("singles.plm", support.listmode(singles.tobytes(), [1, 1], kind=2)), verify=True)
        np.testing.assert_array_equal(file.records(), singles)
        self.assertEqual(file.kind, "singles")
        tags = np.array([(5, 0xFFFFFFFF, 3, 2, petacq.POSITION), (5, 1, 3, 15, 200)], petacq.TAG)
        file = petacq.PlmFile(put("tags.plm", support.listmode(tags.tobytes(), [2], kind=3)), verify=True)
        np.testing.assert_array_equal(file.records(), tags)
        self.assertEqual(file.kind, "tags")
        self.assertEqual(file["value"].view("<i4").tolist(), [-1, 1])
        empty = petacq.PlmFile(put("empty.plm", support.listmode(b"", [])), verify=True)
        self.assertEqual((len(empty), empty.block_count, empty.first_time), (0, 0, None))
        self.assertEqual(len(empty.records()) + len(empty[:5]) + len(list(empty.between(0, 99))), 0)

    def test_views_outlive_the_file(self):
        with petacq.PlmFile(self.path) as file:
            block = file.block(-1)
        self.assertEqual(len(file), 0)
        np.testing.assert_array_equal(block, self.records[-3:])

    def test_random_files(self):
        for seed in range(30):
            choice = random.Random(seed)
            sizes = [choice.randint(1, 40) for _ in range(choice.randint(1, 12))]
            records = pairs(sum(sizes), step=choice.choice([1, 3, 1000]))
            file = petacq.PlmFile(put("random.plm", support.listmode(records.tobytes(), sizes)), verify=True)
            for _ in range(20):
                start, stop = (choice.randint(-len(records) - 2, len(records) + 2) for _ in "ab")
                step = choice.choice([1, 1, 1, 2, 5, -1, -3])
                np.testing.assert_array_equal(file[start:stop:step], records[start:stop:step])
                begin, end = (choice.randint(0, int(records["time"][-1]) + 2) for _ in "ab")
                inside = (records["time"] >= begin) & (records["time"] < end)
                np.testing.assert_array_equal(file[file.find(begin, end)], records[inside])


class Damage(unittest.TestCase):
    def setUp(self):
        self.sizes = [4, 2, 4]
        self.records = pairs(10)
        self.bytes = support.listmode(self.records.tobytes(), self.sizes)

    def test_cut_at_any_byte(self):
        ends = [4096]  # of the header, of each block
        for size in self.sizes:
            ends.append(ends[-1] + 64 + 32 * size)
        for cut in range(len(self.bytes)):
            path = put("cut.plm", self.bytes[:cut])
            if cut < 4096:
                with self.assertRaises(petacq.PlmError, msg=str(cut)):
                    petacq.PlmFile(path)
                continue
            with self.assertWarns(petacq.IncompleteWarning):
                file = petacq.PlmFile(path)
            whole = sum(end <= cut for end in ends) - 1
            self.assertEqual(file.block_count, whole, cut)
            np.testing.assert_array_equal(file.records(), self.records[: sum(self.sizes[:whole])])
            self.assertFalse(file.complete)
            (missing,) = file.missing
            self.assertEqual((missing.offset, missing.bytes), (ends[whole], cut - ends[whole]))
            self.assertIn("cut.plm", str(file.warning))
            with self.assertRaises(petacq.PlmError):
                file.verify()

    def test_a_flipped_bit_anywhere_is_found(self):
        found = {"refused": 0, "by verify": 0, "without index": 0}
        blocks_end = len(self.bytes) - 64 - 32 * len(self.sizes)
        for place in range(len(self.bytes)):
            content = bytearray(self.bytes)
            content[place] ^= 1 << (place % 8)
            path = put("flipped.plm", content)
            try:
                file = open_quietly(path)
            except petacq.PlmError:
                found["refused"] += 1
                self.assertLess(place, 4096)
                continue
            if file.complete:
                found["by verify"] += 1
                self.assertTrue(4096 <= place < blocks_end, place)
                with self.assertRaises(petacq.PlmError, msg=str(place)):
                    file.verify()
                with self.assertRaises(petacq.PlmError):
                    petacq.PlmFile(path, verify=True)
                with self.assertRaises(petacq.PlmError):
                    list(file.blocks(verify=True))
            else:
                found["without index"] += 1
                self.assertGreaterEqual(place, blocks_end)
                np.testing.assert_array_equal(file.records(), self.records)
        self.assertEqual(found["refused"], 4096)
        self.assertEqual(found["by verify"], blocks_end - 4096)

    def test_a_damaged_block_ends_a_file_without_index(self):
        content = bytearray(self.bytes[:-64])
        content[4096 + 64 + 128 + 64 + 5] ^= 1  # in the records of the second block
        file = open_quietly(put("damaged.plm", content))
        np.testing.assert_array_equal(file.records(), self.records[:4])
        self.assertIn("block 1 has a wrong CRC", file.missing[0].why)

    def test_an_index_that_leads_elsewhere_is_refused(self):
        for field, value in ((0, 1 << 40), (8, 1000), (8, 0), (16, 0xFFFFFFFFFFFFFFFF)):
            content = bytearray(self.bytes)
            at = len(content) - 64 - 32 * 2 + field  # second entry
            size = 4 if field == 8 else 8
            content[at : at + size] = value.to_bytes(size, "little")
            index = bytes(content[-64 - 96 : -64])
            content[-64 + 32 : -64 + 36] = support.crc32c(index).to_bytes(4, "little")
            content[-4:] = support.crc32c(bytes(content[-64:-4])).to_bytes(4, "little")
            with self.assertRaisesRegex(petacq.PlmError, "index"):
                petacq.PlmFile(put("index.plm", content))

    def test_foreign_files(self):
        nothing = json.dumps({"tick_ps": 1}).encode()
        for content, why in (
            (b"", "empty"),
            (b"PETTRUTH" + bytes(100), "does not begin"),
            (b"time,crystal\n1,2\n" * 1000, "does not begin"),
            (b"PETA", "cut off"),
            (b"PETX", "does not begin"),
            (nothing, "does not begin"),
            (self.bytes[:8] + b"\4" + self.bytes[9:], "version 4"),
        ):
            with self.assertRaisesRegex(petacq.PlmError, why):
                petacq.PlmFile(put("foreign.plm", content))
        with self.assertRaises(petacq.PetacqError):
            petacq.PlmFile("/dev/null")
        with self.assertRaises(FileNotFoundError):
            petacq.PlmFile(support.scratch() / "none.plm")
        with self.assertRaises(IsADirectoryError):
            petacq.PlmFile(support.scratch())

    def test_sealed_headers_with_impossible_values(self):
        for at, value in ((12, 4097), (12, 0), (12, 1 << 30), (16, 3), (20, 31), (24, 64), (28, 5000)):
            content = bytearray(self.bytes)
            content[at : at + 4] = value.to_bytes(4, "little")
            content[36:40] = support.crc32c(bytes(content[:36])).to_bytes(4, "little")
            with self.assertRaisesRegex(petacq.PlmError, "impossible"):
                petacq.PlmFile(put("impossible.plm", content))
        for text in (b"[1]", b"{", b"[" * 3000, b"\xff\xfe"):
            content = bytearray(self.bytes)
            content[40:4096] = text + bytes(4056 - len(text))
            content[28:32] = len(text).to_bytes(4, "little")
            content[32:36] = support.crc32c(bytes(content[40:4096])).to_bytes(4, "little")
            content[36:40] = support.crc32c(bytes(content[:36])).to_bytes(4, "little")
            with self.assertRaisesRegex(petacq.PlmError, "JSON"):
                petacq.PlmFile(put("description.plm", content))


@unittest.skipUnless(importlib.util.find_spec("zstandard"), "zstandard is not installed (python3-zstandard)")
class Compressed(unittest.TestCase):
    def setUp(self):
        self.sizes = [50, 70, 30]
        self.records = pairs(150)
        self.records["time"] = np.arange(150) * 25  # equal times would need the order of the other fields
        self.bytes = support.listmode(self.records.tobytes(), self.sizes, zstd=True)
        self.path = put("compressed.plm", self.bytes)

    def test_records_are_those_of_a_plain_file(self):
        plain = petacq.PlmFile(put("plain.plm", support.listmode(self.records.tobytes(), self.sizes)))
        file = petacq.PlmFile(self.path, verify=True)
        support.call("petlm", "verify", self.path)
        self.assertEqual(file.payload_crc, plain.payload_crc)
        np.testing.assert_array_equal(file.records(), self.records)
        np.testing.assert_array_equal(file[45:130], self.records[45:130])

    def test_cut_anywhere(self):
        ends = [4096]
        at = 4096
        for size in self.sizes:
            at += 64 + int.from_bytes(self.bytes[at + 52 : at + 56], "little")
            ends.append(at)
        for cut in range(4096, len(self.bytes), 11):
            file = open_quietly(put("cut.plm", self.bytes[:cut]))
            whole = sum(end <= cut for end in ends) - 1
            self.assertFalse(file.complete)
            np.testing.assert_array_equal(file.records(), self.records[: sum(self.sizes[:whole])])

    def test_damage_is_found(self):
        blocks_end = len(self.bytes) - 64 - 32 * len(self.sizes)
        for place in range(4096, blocks_end, 3):
            content = bytearray(self.bytes)
            content[place] ^= 1 << (place % 8)
            file = open_quietly(put("flipped.plm", content))
            try:
                file.verify()
            except petacq.PlmError:
                continue
            np.testing.assert_array_equal(file.records(), self.records)  # a bit that zstd ignores


if __name__ == "__main__":
    unittest.main()
