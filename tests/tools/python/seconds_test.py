import struct
import tempfile
import unittest
import warnings
from pathlib import Path

import numpy as np
import support

import petacq

FIELDS = [
    {"name": "start", "type": "<u8", "shape": [], "offset": 0, "unit": "ticks"},
    {"name": "length", "type": "<u8", "shape": [], "offset": 8, "unit": "ticks"},
    {"name": "prompts", "type": "<u8", "shape": [], "offset": 16},
    {"name": "of_a_later_version", "type": "<f16", "shape": [], "offset": 24},
    {"name": "randoms", "type": "<f8", "shape": [], "offset": 40},
    {"name": "module_dt", "type": "<i8", "shape": [2], "offset": 48, "of": "modules"},
    {"name": "crystal_prompts", "type": "<u4", "shape": [4], "offset": 64, "of": "crystals"},
]


def record(i: int) -> bytes:
    head = struct.pack("<3Q16xd2q4I", 1000 * i, 1000, 10 * i, i / 4, -i, i, 5 * i, 5 * i + 1, 2, 3)
    return head + bytes(128 - len(head))


def file_of_seconds(count: int, fields: object = FIELDS, zstd: bool = False) -> bytes:
    payload = b"".join(record(i) for i in range(count))
    return support.listmode(payload, [1] * count, kind=4, fields=fields, zstd=zstd)


class Seconds(unittest.TestCase):
    def setUp(self):
        self.run_ = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def write(self, content: bytes) -> petacq.Run:
        (self.run_ / "seconds.plm").write_bytes(content)
        return petacq.open_run(self.run_)

    def check(self, seconds):
        self.assertEqual(seconds.kind, "seconds")
        self.assertEqual(
            seconds.dtype.names, ("start", "length", "prompts", "randoms", "module_dt", "crystal_prompts")
        )
        np.testing.assert_array_equal(seconds["start"], [0, 1000, 2000])
        np.testing.assert_array_equal(seconds["randoms"], [0, 0.25, 0.5])
        np.testing.assert_array_equal(seconds["module_dt"], [[0, 0], [-1, 1], [-2, 2]])
        np.testing.assert_array_equal(seconds["crystal_prompts"][:, :2], [[0, 1], [5, 6], [10, 11]])
        self.assertEqual(seconds.records()["crystal_prompts"].shape, (3, 4))
        self.assertEqual(seconds[1]["prompts"], 10)
        self.assertEqual([int(part["start"][0]) for part in seconds.between(1, 2001)], [1000, 2000])
        self.assertEqual(seconds.first_time, 0)
        seconds.verify()

    def test_arrays(self):
        self.check(self.write(file_of_seconds(3)).seconds)

    def test_compressed(self):
        try:
            content = file_of_seconds(3, zstd=True)
        except ImportError:
            self.skipTest("zstandard is not installed")
        self.check(self.write(content).seconds)

    def test_cut_anywhere(self):
        whole = file_of_seconds(3)
        for size in [4096, 4100, 4096 + 192, 4096 + 300, 4096 + 3 * 192, len(whole) - 1]:
            with self.subTest(size=size), warnings.catch_warnings():
                warnings.simplefilter("ignore", petacq.IncompleteWarning)
                seconds = self.write(whole[:size]).seconds
                self.assertFalse(seconds.complete)
                expected = min((size - 4096) // 192, 3)
                np.testing.assert_array_equal(seconds["start"], 1000 * np.arange(expected))

    def test_descriptions_that_describe_no_record(self):
        def changed(i: int, **changes: object) -> list[dict[str, object]]:
            return [{**field, **(changes if k == i else {})} for k, field in enumerate(FIELDS)]

        for fields in [
            None,
            7,
            [],
            {},
            changed(2, offset=125),
            changed(2, offset=-8),
            changed(2, offset="x"),
            changed(5, shape=[1 << 60]),
            changed(5, shape=3),
            changed(2, name="start"),
            changed(0, type="<f8"),
            changed(0, offset=8),
            changed(0, shape=[1]),
        ]:
            with self.subTest(fields=fields):
                run = self.write(file_of_seconds(1, fields))
                with self.assertRaises(petacq.PlmError):
                    run.seconds

    def test_none(self):
        (self.run_ / "run.json").write_text("{}", encoding="utf-8")
        self.assertIsNone(petacq.open_run(self.run_).seconds)


class RealRun(unittest.TestCase):
    def test_they_agree_with_the_ledger(self):
        run = petacq.open_run(support.small_run(), verify=True)
        seconds = run.seconds
        self.assertTrue(seconds.complete)
        self.assertEqual(seconds["crystal_prompts"].shape, (len(seconds), run.scanner.crystal_count))
        self.assertEqual(seconds["module_prompts"].shape, (len(seconds), run.scanner.bdm_count))
        self.assertEqual(int(seconds["prompts"].sum()), run.ledger["singles"]["prompts"])
        np.testing.assert_array_equal(seconds["crystal_prompts"].sum(1), 2 * seconds["prompts"])
        self.assertEqual(run.metadata["seconds"]["records"], len(seconds))


if __name__ == "__main__":
    unittest.main()
