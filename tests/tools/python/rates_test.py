"""run.rates() against numbers that are written down here, and against the records of a real run."""

import json
import struct
import tempfile
import unittest
from pathlib import Path

import numpy as np
import support

import petacq

TICK_PS = 1000.0  # a second has 1e9 ticks
SECOND = 10**9
NAMES = ("start", "length", "decided", "prompts", "delayeds")
FIELDS = [{"name": name, "type": "<u8", "shape": [], "offset": 8 * i} for i, name in enumerate(NAMES)]
FLOATS = ("delayeds_weight", "randoms", "lost", "pile_up")
FIELDS += [{"name": name, "type": "<f8", "shape": [], "offset": 40 + 8 * i} for i, name in enumerate(FLOATS)]
FIELDS += [{"name": "module_dead_time", "type": "<f8", "shape": [2], "offset": 72}]
NAN = float("nan")


def record(start, length, decided, prompts, delayeds, weight, randoms, lost, pile_up, dead):
    head = struct.pack("<5Q6d", start, length, decided, prompts, delayeds, weight, randoms, lost, pile_up, *dead)
    return head + bytes(128 - len(head))


class Rates(unittest.TestCase):
    def setUp(self):
        self.run_ = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def made(self, records, **metadata):
        document = {"start_ticks": 7 * SECOND + SECOND // 2, "configuration": {}, **metadata}
        (self.run_ / "run.json").write_text(json.dumps(document), encoding="utf-8")
        payload = b"".join(record(*numbers) for numbers in records)
        content = support.listmode(payload, [1] * len(records), kind=4, fields=FIELDS, tick_ps=TICK_PS)
        (self.run_ / "seconds.plm").write_bytes(content)
        return petacq.open_run(self.run_)

    def test_each_second_has_its_own_length_and_gaps_stay(self):
        rates = self.made(
            [
                (7 * SECOND + SECOND // 2, SECOND // 2, 500, 50, 10, 2.0, 20.0, 0.0, 1.5, (SECOND / 20, NAN)),
                (8 * SECOND, SECOND, 1000, 100, 20, 2.0, 40.0, NAN, NAN, (NAN, NAN)),
                (10 * SECOND, SECOND // 4, 250, 25, 0, 0.0, NAN, -3.0, 1.0, (0.0, SECOND / 4)),
            ]
        ).rates()
        self.assertEqual(len(rates), 3)
        np.testing.assert_allclose(rates.start_s, [0, 0.5, 2.5])
        np.testing.assert_allclose(rates.length_s, [0.5, 1, 0.25])
        np.testing.assert_allclose(rates.singles, [1000, 1000, 1000])
        np.testing.assert_allclose(rates.prompts, [100, 100, 100])
        np.testing.assert_allclose(rates.delayeds, [20, 20, 0])
        np.testing.assert_allclose(rates.delayeds_weight, [2, 2, NAN])
        np.testing.assert_allclose(rates.randoms, [40, 40, NAN])
        np.testing.assert_allclose(rates.net_trues, [60, 60, NAN])
        np.testing.assert_allclose(rates.lost, [0, NAN, -12])
        np.testing.assert_allclose(rates.pile_up, [1.5, NAN, 1])
        np.testing.assert_allclose(rates.dead_time, [[0.1, NAN], [NAN, NAN], [0, 1]])

    def test_what_a_run_of_singles_alone_does_not_know(self):
        numbers = (8 * SECOND, SECOND, 1000, 0, 0, 0.0, NAN, 0.0, NAN, (NAN, NAN))
        rates = self.made([numbers], configuration={"listmode": {"write_coincidences": False}}).rates()
        self.assertEqual(rates.singles.tolist(), [1000])
        for name in ("prompts", "delayeds", "randoms", "net_trues"):
            self.assertTrue(np.isnan(getattr(rates, name)).all(), name)

    def test_a_run_without_seconds_or_with_none_yet(self):
        self.assertEqual(len(self.made([]).rates()), 0)
        self.assertEqual(self.made([]).rates().dead_time.shape, (0, 2))
        run = self.made([])
        (self.run_ / "seconds.plm").unlink()
        with self.assertRaisesRegex(petacq.RunError, "without seconds.plm"):
            petacq.open_run(run.path).rates()

    def test_seconds_that_lack_a_field(self):
        payload = record(0, 1, 1, 1, 1, 0, 0, 0, 0, (0, 0))
        content = support.listmode(payload, [1], kind=4, fields=FIELDS[:4])
        (self.run_ / "seconds.plm").write_bytes(content)
        with self.assertRaisesRegex(petacq.PlmError, "no column 'delayeds'"):
            petacq.open_run(self.run_).rates()

    def test_a_real_run(self):
        run = petacq.open_run(support.small_run())
        rates = run.rates()
        prompts = rates.prompts * rates.length_s
        self.assertEqual(round(prompts.sum()), run.ledger["pairs"]["prompts_found"])
        times = run.coincidences["time"][run.coincidences["kind"] == petacq.PROMPT]
        begin = (run.seconds["start"].astype("i8") - run.coverage.reference) * run.tick_s
        np.testing.assert_allclose(rates.start_s, begin, atol=1e-9)
        self.assertAlmostEqual(float(rates.length_s.sum()), run.duration_s, delta=1e-5)
        slow = [int(((times >= s) & (times < s + n)).sum()) for s, n in run.seconds[["start", "length"]]]
        np.testing.assert_allclose(prompts, slow)
        self.assertTrue((rates.randoms[rates.length_s > 0.1] > 0).all())
        self.assertEqual(rates.dead_time.shape, (len(rates), run.scanner.bdm_count))


if __name__ == "__main__":
    unittest.main()
