"""Files that a fault or somebody has changed, with checksums that are right: the reader refuses them with an error of its own,
or what it gives lies in the file. tests/fuzz/ does the same to the programs."""

import copy
import json
import random
import struct
import unittest
import warnings

import numpy as np
import support

import petacq
from petacq.crc32c import crc32c

FIELDS = [
    {"name": "start", "type": "<u8", "shape": [], "offset": 0},
    {"name": "length", "type": "<u8", "shape": [], "offset": 8},
    {"name": "randoms", "type": "<f8", "shape": [], "offset": 16},
    {"name": "crystal_prompts", "type": "<u4", "shape": [12], "offset": 24},
]
COVERAGE = {
    "version": 1,
    "tick_ps": 15.625,
    "intervals": [[10, 2000], [3000, 90000]],
    "anchor": {"ticks": 10, "unix_ns": 1_800_000_000_000_000_000},
    "activity": {"nuclide": "F-18", "half_life_s": 6586.2, "branching_ratio": 0.967, "activity_MBq": 10,
                 "assay_unix_ns": 1_800_000_000_000_000_000},
    "rules": {"coincidence": {"window_ticks": 320, "delay_ticks": 6400}, "energy": {"filter": True, "lower_keV": 350, "upper_keV": 650}},
    "loss": {"live": 0.9, "seconds_complete": True},
    "origin": {"runs": [{"run_id": "small", "directory": None}], "calibration_sha256": None, "scanner_sha256": None},
}
OF_1_0 = {
    "window_ticks": 320, "delay_ticks": 6400, "cut": {"from_ticks": 1, "to_ticks": 900}, "gate": None,
    "operator": {"nuclide": "F-18", "half_life_s": 6586.2, "branching_ratio": 0.967, "activity_MBq": 10, "assay_utc": "2026-11-20T19:45:00Z"},
}
NUMBERS = [0, 1, 2, 3, 4, 5, 16, 32, 64, 128, 255, 4096, 65535, 1 << 24, (1 << 31) - 1, 1 << 31, (1 << 32) - 1]
VALUES = [None, True, -1, 0, 1, 0.5, 1e308, 2**63, 2**64 - 1, "", "x", [], {}, [[2, 1]], [1], {"a": 1}]


def records(kind):
    size = support.RECORD_BYTES[kind]
    return b"".join(struct.pack("<Q", 100 * i) + bytes([i % 2] * 4) + bytes(size - 12) for i in range(23))


def whole_files():
    """One of each kind, plain, compressed and with a closing description."""
    sizes = [5, 1, 7, 7, 3]
    for kind in support.RECORD_BYTES:
        more = {"fields": FIELDS} if kind == 4 else {}
        yield support.listmode(records(kind), sizes, kind, coverage=COVERAGE, **more)
        yield support.listmode(records(kind), sizes, kind, closing=json.dumps({"coverage": COVERAGE}).encode(), **more)
    try:
        yield support.listmode(records(1), sizes, zstd=True)
    except ImportError:
        pass


def seal(content, at, size):
    struct.pack_into("<I", content, at + size - 4, crc32c(np.frombuffer(bytes(content[at : at + size - 4]), np.uint8)))


def crc(content, begin, end):
    return crc32c(np.frombuffer(bytes(content[begin:end]), np.uint8))


def sealed(content):
    """With all checksums set right."""
    content = bytearray(content)
    header_bytes = struct.unpack_from("<I", content, 12)[0]
    struct.pack_into("<I", content, 32, crc(content, 40, header_bytes))
    seal(content, 0, 40)
    at = content.find(b"PLMBLOCK")
    while 0 <= at <= len(content) - 64:
        count, size = struct.unpack_from("<II", content, at + 16)
        if count * size < len(content) and struct.unpack_from("<I", content, at + 56)[0] == 0:
            struct.pack_into("<I", content, at + 48, crc(content, at + 64, at + 64 + count * size))
        seal(content, at, 64)
        at = content.find(b"PLMBLOCK", at + 8)
    end = len(content) - 64
    offset, closing = struct.unpack_from("<Q", content, end + 8)[0], struct.unpack_from("<I", content, end + 40)[0]
    if offset <= end - closing:
        struct.pack_into("<I", content, end + 32, crc(content, offset, end - closing))
        struct.pack_into("<I", content, end + 44, crc(content, end - closing, end))
    seal(content, end, 64)
    return bytes(content)


def changed_bytes(content, choice):
    """A few numbers changed, mostly those that describe the records; parts repeated or missing."""
    content = bytearray(content)
    places = [8, 12, 16, 20, 24, 28] + [len(content) - 64 + i for i in range(0, 64, 4)]
    at = content.find(b"PLMBLOCK")
    while at >= 0:
        places += [at + i for i in range(8, 60, 4)]
        at = content.find(b"PLMBLOCK", at + 8)
    for _ in range(choice.randrange(1, 4)):
        what = choice.randrange(8)
        if what == 0:
            del content[choice.randrange(40, len(content)) :][: choice.randrange(1, 200)]
            content = content[: max(200, len(content))]
        elif what == 1:
            begin = choice.randrange(len(content))
            content[begin:begin] = content[begin : begin + choice.randrange(1, 200)]
        elif what == 2:
            content = content[: choice.randrange(4200, len(content) + 1)] if len(content) > 4200 else content
        else:
            place = choice.choice(places)
            if place + 4 <= len(content):
                struct.pack_into("<I", content, place, choice.choice(NUMBERS))
    return content


def changed_document(document, choice):
    document = copy.deepcopy(document)
    for _ in range(choice.randrange(1, 4)):
        holders = []

        def collect(node, into=holders):
            keys = node.keys() if isinstance(node, dict) else range(len(node))
            for key in keys:
                into.append((node, key))
                if isinstance(node[key], (dict, list)):
                    collect(node[key])

        collect(document)
        if holders:
            node, key = choice.choice(holders)
            node[key] = copy.deepcopy(choice.choice(VALUES))
    return document


class Hostile(unittest.TestCase):
    def read(self, content):
        """True if the file is taken."""
        path = support.scratch() / "hostile.plm"
        path.unlink(missing_ok=True)
        path.write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                file = petacq.PlmFile(path)
            except petacq.PetacqError as error:
                self.assertIn(str(path), str(error))
                return False
            try:
                counts = [len(file.block(number)) for number in range(file.block_count)]
                self.assertEqual(sum(counts), len(file))
                if b"\x28\xb5\x2f\xfd" not in content:  # a frame of zstd
                    self.assertLessEqual(len(file) * file.dtype.itemsize, len(content))
                _ = file.payload_crc
                file.verify()
                _ = file.tick_ps
                coverage = file.coverage
                self.assertGreaterEqual(coverage.duration_s, 0)
                _ = coverage.start, coverage.stop, coverage.decay_factor()
            except petacq.PetacqError as error:
                self.assertIn(str(path), str(error))
        return True

    def test_files_as_they_were_written(self):
        for content in whole_files():
            self.assertEqual(sealed(content), content)
            self.assertTrue(self.read(content))

    def test_changed_bytes(self):
        choice = random.Random(1)
        taken = 0
        for content in whole_files():
            for _ in range(60):
                taken += self.read(sealed(changed_bytes(content, choice)))
        self.assertGreater(taken, 50)  # otherwise nothing behind the header is reached

    def test_changed_descriptions(self):
        choice = random.Random(2)
        taken = 0
        for number in range(300):
            said = changed_document({"fields": FIELDS, **({"coverage": COVERAGE} if number % 2 else OF_1_0)}, choice)
            taken += self.read(support.listmode(records(4)[:128], [1], 4, **said))
        self.assertGreater(taken, 50)


if __name__ == "__main__":
    unittest.main()
