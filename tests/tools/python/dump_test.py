"""Compares the module with petlm dump on the same files."""

import random
import subprocess
import unittest
import warnings

import numpy as np
import support

import petacq


KINDS = {
    "prompt": petacq.PROMPT,
    "delayed": petacq.DELAYED,
    "trigger": petacq.TRIGGER,
    "gate": petacq.GATE,
    "position": petacq.POSITION,
    "dead_time": petacq.DEAD_TIME,
    "clock": petacq.CLOCK,
}


def dumped(path, status=0):
    """The records of a file as petlm dump prints them, in the module's types."""
    text = support.call("petlm", "dump", path, status=status)
    head, *lines = text.splitlines()
    kind = petacq.COINCIDENCE if head.startswith("kind") else petacq.TAG if "value" in head else petacq.SINGLE
    names = head.split(",")
    records = np.zeros(len(lines), kind)
    columns = list(zip(*(line.split(",") for line in lines))) or [()] * len(names)
    for name, texts in zip(names, columns):
        if name == "kind":
            texts = [str(KINDS.get(t, t)) for t in texts]
        if name == "value":
            texts = [str(int(t) % (1 << 32)) for t in texts]  # positions have a sign
        # petlm prints enough digits to restore each float exactly.
        records[name] = [float(t) if name.startswith("energy") else int(t) for t in texts]
    return records


class Dump(unittest.TestCase):
    def test_every_record_is_what_petlm_dump_prints(self):
        run = petacq.open_run(support.small_run(), verify=True)
        for part in (run.coincidences, run.singles):
            expected = dumped(part.path)
            self.assertGreater(len(expected), 1000)
            self.assertGreater(part.block_count, 3)
            self.assertEqual(part.records().tobytes(), expected.tobytes())
        kinds = run.coincidences["kind"]
        self.assertEqual(set(kinds), {petacq.PROMPT, petacq.DELAYED})

    def test_tags(self):
        kinds = [*range(5), 5, 255]
        tags = np.array([(7 * k, 0xFFFF0000 + k, 40000 + k, k % 16, k) for k in kinds], petacq.TAG)
        path = support.scratch() / "tags.plm"
        path.write_bytes(support.listmode(tags.tobytes(), [4, 3], kind=3))
        self.assertEqual(petacq.PlmFile(path).records().tobytes(), dumped(path).tobytes())

    def test_files_cut_anywhere_hold_what_petlm_finds_in_them(self):
        source = (support.small_run() / "coincidences.plm").read_bytes()
        path = support.scratch() / "cut-run.plm"
        choice = random.Random(3)
        for cut in [4096, 4160, len(source) - 1, *(choice.randrange(4096, len(source)) for _ in range(12))]:
            path.unlink(missing_ok=True)
            path.write_bytes(source[:cut])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", petacq.IncompleteWarning)
                file = petacq.PlmFile(path)
            self.assertEqual(file.records().tobytes(), dumped(path, status=1).tobytes(), cut)
            self.assertFalse(file.complete)

    def test_the_payload_crc_is_that_of_petlm(self):
        run = petacq.open_run(support.small_run())
        text = support.call("petlm", "verify", run.path)
        self.assertIn(f"crc32c {run.coincidences.payload_crc:08x}", text)
        self.assertIn(f"crc32c {run.singles.payload_crc:08x}", text)

    def test_what_petlm_recovers(self):
        path = support.scratch() / "torn.plm"
        source = (support.small_run() / "singles.plm").read_bytes()
        path.write_bytes(source[: len(source) * 2 // 3])
        done = subprocess.run([support.program("petlm"), "recover", path], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        with self.assertWarns(petacq.IncompleteWarning):
            torn = petacq.PlmFile(path)
        whole = petacq.PlmFile(path.with_suffix(".recovered.plm"), verify=True)
        self.assertEqual(whole.records().tobytes(), torn.records().tobytes())
        self.assertEqual(whole.description["recovered"]["state"], "truncated")


if __name__ == "__main__":
    unittest.main()
