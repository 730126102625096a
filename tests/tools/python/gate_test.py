"""A run of a point that breathes, from petsim through a capture and petacqd to petlm gate and cut --gate."""

import json
import shutil
import unittest

import numpy as np
import support

import petacq

AMPLITUDE_MM = 6
PITCH_MM = 1.7  # of the crystals: the simplest estimate of a place has steps of half of it


def axial_mm(pairs, scanner):
    """Where the lines of the prompts pass the axis: their median."""
    pairs = pairs[pairs["kind"] == petacq.PROMPT]
    a, b = (scanner.positions_mm()[pairs[name]] for name in ("crystal_a", "crystal_b"))
    across = np.sum((b - a)[:, :2] ** 2, axis=1)
    steep = across <= 4 * (b - a)[:, 2] ** 2
    a, b, across = a[~steep], b[~steep], across[~steep]
    along = -np.sum(a[:, :2] * (b - a)[:, :2], axis=1) / across
    return np.median(a[:, 2] + along * (b - a)[:, 2])


class Gate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        site = support.scratch() / "gate"
        (site / "data").mkdir(parents=True)
        shutil.copy(support.SOURCE / "config" / "examples" / "small.scanner.json", site)
        scanner, calibration, capture = site / "small.scanner.json", site / "small.h5", site / "breath.pcap"
        support.call("petcal", "make", "--scanner", scanner, "--output", calibration, "--bins", 16)
        configuration = {
            "scanner": "small.scanner.json",
            "calibration": "small.h5",
            "data_dir": "data",
            "receive": {"sockets": [{"address": "127.0.0.1", "port": 9601}]},
            "coincidence": {"window_ticks": 320},
            "pipeline": {"backend": "cpu", "threads": 1},
            "control": {"socket": "control.sock"},
        }
        (site / "petacqd.json").write_text(json.dumps(configuration), encoding="utf-8")
        support.call(
            *("petsim", "--crystals", "surface", "--scanner", scanner, "--calibration", calibration, "--write", capture, "--quiet"),
            *("--threads", 1, "--duration-s", 0.6, "--point", "0,0,0,1", "--scatter", 0, "--cycle", "0.1,0.05"),
            *("--motion", f"z,{AMPLITUDE_MM},sine", "--tag-trigger", 1, "--tag-gate", "2:0.4-0.6"),
            *("--tag-position", 3, "--tag-clock", "4:0.1", "--tag-source", 2),
        )
        support.call("petacqd", "--config", site / "petacqd.json", "--replay", capture)
        (cls.path,) = (site / "data").iterdir()
        cls.run_ = petacq.open_run(cls.path, verify=True)

    def test_the_tags_are_those_that_were_sent(self):
        tags = self.run_.tags.records()
        self.assertEqual(self.run_.ledger["tags"]["written"], len(tags))
        self.assertTrue(self.run_.ledger["closed"])
        triggers = tags[tags["kind"] == petacq.TRIGGER]
        self.assertEqual(triggers["value"].tolist(), list(range(1, len(triggers) + 1)))
        self.assertEqual(set(triggers["channel"]), {1})
        periods = np.diff(triggers["time"].astype("f8")) * self.run_.tick_s
        self.assertTrue(np.all(np.abs(periods - 0.1) <= 0.0151), periods)
        clock = tags[tags["kind"] == petacq.CLOCK]
        self.assertEqual(clock["value"].tolist(), [0, 100, 200, 300, 400, 500])
        self.assertEqual(tags[tags["kind"] == petacq.POSITION]["value"].tolist(), [0])
        gates = tags[tags["kind"] == petacq.GATE]
        self.assertEqual(gates["value"].tolist(), [1, 0] * (len(gates) // 2) + [1] * (len(gates) % 2))

    def test_each_phase_shows_where_the_point_was(self):
        output = support.scratch() / "phases"
        support.call("petlm", "gate", self.path, "--channel", 1, "--output", output)
        total = 0
        for number in range(8):
            pairs = petacq.PlmFile(output / f"phase-{number + 1:02}.plm", verify=True).records()
            total += len(pairs)
            self.assertGreater(len(pairs), 1000)
            expected = AMPLITUDE_MM * (1 - np.cos(2 * np.pi * (number + 0.5) / 8)) / 2
            self.assertLess(abs(axial_mm(pairs, self.run_.scanner) - expected), PITCH_MM / 4, number)
        triggers = self.run_.tags.records()
        triggers = triggers[triggers["kind"] == petacq.TRIGGER]["time"]
        inside = self.run_.coincidences.find(int(triggers[0]), int(triggers[-1]))
        self.assertEqual(total, inside.stop - inside.start)

    def test_an_open_gate_shows_the_middle_of_the_breath(self):
        output = support.scratch() / "open.plm"
        support.call("petlm", "cut", self.path, "--gate", 2, "--output", output)
        file = petacq.PlmFile(output, verify=True)
        self.assertLess(abs(axial_mm(file.records(), self.run_.scanner) - AMPLITUDE_MM), PITCH_MM / 2)
        tags = self.run_.tags.records()
        gates = tags[tags["kind"] == petacq.GATE]
        kept = 0
        for opens, closes in zip(gates["time"][::2], gates["time"][1::2]):
            part = self.run_.coincidences.find(int(opens), int(closes))
            kept += part.stop - part.start
        if len(gates) % 2:
            part = self.run_.coincidences.find(int(gates["time"][-1]), 1 << 64)
            kept += part.stop - part.start
        self.assertEqual(len(file), kept)


if __name__ == "__main__":
    unittest.main()
