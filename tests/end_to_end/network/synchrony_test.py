"""Boards out of step with the others, as an operator hears of them; and scanners that are well.

    synchrony_test.py DIRECTORY_OF_PROGRAMS SOURCE"""

import functools
import grp
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

BIN, SOURCE = map(os.path.abspath, sys.argv[1:3])
EXAMPLES = os.path.join(SOURCE, "config", "examples")
# On a loaded machine a daemon may get a twentieth of a core.
PATIENCE_S = 150
# Enough to know a scanner, and less than it sends in 3 s.
FRAMES = 60_000
# Activities that give about 60,000 frames/s of the small scanner: to look for them (petsim --rate) takes longer than to send them.
CYLINDER = ("--cylinder", "0,0,0,10,20,0.125")


def program(name, *arguments, **options):
    return subprocess.run([os.path.join(BIN, name), *map(str, arguments)], capture_output=True, text=True, check=True,
                          timeout=120, **options)


CALIBRATIONS = tempfile.TemporaryDirectory(prefix="petacq-calibrations-")


@functools.cache
def calibration_of(example):
    """The file of a calibration of a scanner of the examples."""
    file = os.path.join(CALIBRATIONS.name, example + ".h5")
    program("petcal", "make", "--scanner", os.path.join(EXAMPLES, example + ".scanner.json"), "--output", file)
    return file


class Site:
    """A directory for a daemon, with a scanner of the examples and its calibration."""

    def __init__(self, example):
        self.folder = tempfile.TemporaryDirectory(prefix="petacq-synchrony-")
        self.scanner = os.path.join(EXAMPLES, example + ".scanner.json")
        self.calibration = calibration_of(example)
        with open(os.path.join(EXAMPLES, example + ".json"), encoding="utf-8") as file:
            self.configuration = json.load(file)
        self.configuration.update(
            scanner=self.scanner, calibration=self.calibration, data_dir=self.path("data"), http={"listen": ""},
            control={"socket": self.path("sock"), "group": grp.getgrgid(os.getgid()).gr_name}, health={"min_disk_free_bytes": 0},
            receive={"sockets": [{"address": "127.0.0.1", "port": 0}], "lock_memory": False, "batch_count": 64,
                     "batch_bytes": 262144})
        self.configuration.pop("$schema")
        os.mkdir(self.path("data"))

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def __enter__(self):
        with open(self.path("c.json"), "w", encoding="utf-8") as file:
            json.dump(self.configuration, file)
        self.log = open(self.path("log"), "w", encoding="utf-8")
        self.daemon = subprocess.Popen([os.path.join(BIN, "petacqd"), "--config", self.path("c.json")],
                                       stderr=self.log)
        self.wait_for(lambda status: True)
        return self

    def __exit__(self, *_):
        self.daemon.terminate()
        self.daemon.wait(PATIENCE_S)
        self.log.close()
        self.folder.cleanup()

    def status(self):
        return json.loads(program("petctl", "--socket", self.path("sock"), "status", "--json").stdout)

    def wait_for(self, condition):
        """The first status for which the condition holds."""
        end = time.monotonic() + PATIENCE_S
        status = None
        while time.monotonic() < end and self.daemon.poll() is None:
            try:
                status = self.status()
            except subprocess.CalledProcessError:
                status = None
            if status is not None and condition(status):
                return status
            time.sleep(0.4)
        with open(self.path("log"), encoding="utf-8") as file:
            shown = status and (status["health"], status["synchrony"], status["recording"])
            raise TimeoutError(f"last: {json.dumps(shown)}\n{file.read()}")

    def send(self, *options, seconds=4):
        port = self.status()["sockets"][0]["port"]
        return subprocess.Popen(
            [os.path.join(BIN, "petsim"), "--crystals", "surface", "--scanner", self.scanner, "--calibration", self.calibration, "--quiet",
             "--to", f"127.0.0.1:{port}", "--duration-s", str(seconds), *map(str, options)])


def reasons(status):
    return {r["code"]: r["message"] for r in status["health"]["reasons"] if r["code"].startswith("boards_")}


class OutOfStep(unittest.TestCase):
    def found(self, late, *options):
        """Reasons and modules when boards (source: ns) are late from the start."""
        jumps = [text for source, ns in late.items() for text in ("--clock-jump", f"{source}@0:{round(ns * 64)}")]
        with Site("small") as site:
            # Until it is found: on a loaded machine that takes its time, and boards that stop sending are not out of step.
            sender = site.send(*CYLINDER, *jumps, *options, seconds=PATIENCE_S)
            try:
                wanted = 6 * len(late)
                status = site.wait_for(lambda s: s["synchrony"] and reasons(s) and wanted == sum(
                    m["state"] in ("out_of_step", "no_partners") for m in s["synchrony"]["modules"]))
            finally:
                sender.terminate()
                sender.wait()
            for module in status["synchrony"]["modules"]:
                self.assertEqual(module["source"], module["bdm"] // 6)
                ns = late.get(module["source"], 0)
                if module["state"] in ("in_step", "out_of_step"):
                    self.assertAlmostEqual(module["offset_ns"], ns, delta=0.5)
                    self.assertAlmostEqual(module["add_ticks"], -ns * 64, delta=32)
                    self.assertEqual(module["state"], "out_of_step" if ns else "in_step")
            return status

    def test_one_board(self):
        for ns in (3, 100, -5000):
            with self.subTest(ns=ns):
                message = reasons(self.found({3: ns}))["boards_out_of_step"]
                self.assertIn("6 BDMs are out of step with the others: 18-23; the worst: BDM", message)
                self.assertIn("late against the others" if ns > 0 else "early against the others", message)
                self.assertIn("petcal apply --bdm-ticks", message)
                self.assertIn("its prompts are lost" if abs(ns) > 5 else "at the edge of the window", message)

    def test_two_boards(self):
        self.found({1: 20, 3: -400})

    def test_half_of_the_boards(self):
        self.found({1: 50, 3: 50})
        self.found({2: 10, 3: 10})

    def test_out_of_reach(self):
        message = reasons(self.found({3: 3_000_000}))["boards_without_partners"]
        self.assertIn("no coincidences with the others at all", message)

    def test_the_offset_that_is_named_brings_it_into_step(self):
        site = Site("small")
        ticks = [f"--bdm-ticks={bdm}:-640" for bdm in range(18, 24)]
        other = site.path("other.h5")
        program("petcal", "apply", "--scanner", site.scanner, "--calibration", site.calibration, *ticks, "-o", other)
        site.configuration["calibration"] = other
        with site:
            sender = site.send(*CYLINDER, "--clock-jump", "3@0:640")
            try:
                status = site.wait_for(lambda s: s["synchrony"] and all(
                    m["state"] == "in_step" for m in s["synchrony"]["modules"]))
            finally:
                sender.terminate()
                sender.wait()
            self.assertEqual(reasons(status), {})


class InStep(unittest.TestCase):
    def check(self, example, *options, frames=FRAMES):
        """Boards that have sent so many frames are known to be in step, if that is enough, and nothing was said of them."""
        with Site(example) as site:
            sender = site.send(*options, "--pace", 2, seconds=2 * PATIENCE_S)
            seen = {}

            def enough(status):
                seen.update(reasons(status))
                return sum(s["frames"] for s in status["sources"]) >= frames and (frames < FRAMES or status["synchrony"])
            try:
                status = site.wait_for(enough)
            finally:
                sender.terminate()
                sender.wait()
            self.assertEqual(seen, {})
            if status["synchrony"]:
                states = {m["state"] for m in status["synchrony"]["modules"]}
                self.assertLessEqual(states, {"in_step", "unknown"})

    def test_examples(self):
        self.check("small", *CYLINDER)
        self.check("mouse", *CYLINDER)

    def test_off_the_centre(self):
        self.check("small", "--point", "25,5,0,0.1")
        self.check("small", "--point", "0,0,0,0.125")
        self.check("small", "--line", "-25,0,-10,25,10,10,0.115")
        for place in ("30,-20,10,0.085", "0,44,-45,0.105", "-35,5,40,0.105"):
            with self.subTest(place=place):
                self.check("mouse", "--point", place)

    def test_low_rate(self):
        self.check("small", "--cylinder", "0,0,0,10,20,0.0002", frames=FRAMES // 200)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
