"""Frames of version 2: a scanner of 300 modules, and one with more than 256 crystals in a unit, live and replayed.

    many_modules_test.py DIRECTORY_OF_PROGRAMS SOURCE"""

import json
import os
import re
import sys
import unittest

from daemon import Site

BIN, _ = sys.argv[1:3]


def scanner(channels, modules_z, crystals, position_size, radius, pitch):
    modules = channels * modules_z
    return {
        "name": "version 2", "frame_version": 2, "tick_ps": 15.625,
        "geometry": {"channels": channels, "modules": {"y": 1, "z": modules_z}, "blocks": {"y": 1, "z": 1},
                     "crystals": {"y": crystals, "z": crystals}, "bdm_count": modules, "du_count": 1,
                     "position_size": position_size},
        "dimensions": {"ring_radius_mm": radius, "crystal_pitch_y_mm": pitch, "crystal_pitch_z_mm": pitch,
                       "crystal_length_mm": 15},
        # Ten sources; each carries modules all around the ring.
        "sources": [{"id": 100 + s, "bdms": [m for m in range(modules) if m % 10 == s % 10]}
                    for s in range(min(10, modules))]}


class ManyModules(unittest.TestCase):
    def simulate(self, here, *where):
        here.program(
            "petsim", "--crystals", "surface", "--scanner", here.file("scanner.json"), "--calibration", here.file("c.h5"),
            "--point", "5,3,2,2", "--duration-s", "0.3", "--corrupt", "bdm:0.002", "--corrupt", "marker:0.002", "--seed", "5",
            "--summary", here.file("summary.json"), "--quiet", *where)
        with open(here.file("summary.json"), encoding="utf-8") as file:
            return json.load(file)

    def check(self, described):
        modules = described["geometry"]["bdm_count"]
        with Site(BIN, described, {"coincidence": {"window_ticks": 320, "delay_ticks": 6400}}) as here:
            def send(port, wait):
                summary.update(self.simulate(here, "--to", f"127.0.0.1:{port}", "--pace", "0.1"))
                wait(summary["total"]["datagrams"])
            summary = {}
            live = here.live("live", send)["ledger"]
            self.simulate(here, "--write", here.file("s.pcap"))
            replayed = here.replay("replayed", here.file("s.pcap"))["ledger"]
            for ledger in (live, replayed):
                self.assertTrue(ledger["closed"])
                self.assertEqual([ledger["datagrams"][key] for key in ("lost", "malformed", "unknown_source")], [0, 0, 0])
                for reason in ("received", "bad_marker", "bad_address", "outside_crystal", "bad_time"):
                    self.assertEqual(ledger["frames"][reason], summary["total"]["expected"][f"frames_{reason}"], reason)
                self.assertGreater(ledger["frames"]["bad_address"], 0)
                self.assertGreater(ledger["frames"]["bad_marker"], 0)
                self.assertGreater(ledger["singles"]["prompts"], 1000)
            self.assertEqual(here.listmode("live"), here.listmode("replayed"))
            # The raw capture holds frames of version 2.
            here.replay("again", here.file("live", "raw.pcap"))
            self.assertEqual(here.listmode("live"), here.listmode("again"))
            here.program("petlm", "verify", here.file("live"))
            self.frames(here, modules)

    def frames(self, here, modules):
        text = here.program("petctl", "frames", "--config", here.file("petacqd.json"), "--count", "40",
                            here.file("live", "raw.pcap"))
        shown = {int(bdm) for bdm in re.findall(r"BDM (\d+)  x", text)}
        self.assertTrue(shown & set(range(modules)))

    def test_three_hundred_modules(self):
        self.check(scanner(60, 5, 3, 16, 200, 5))

    def test_more_than_256_crystals_in_a_unit(self):
        self.check(scanner(12, 1, 18, 80, 80, 2))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
