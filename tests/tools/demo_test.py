"""petacqd-demo shows the whole way, and says so if it went wrong: demo_test.py FOLDER_OF_PROGRAMS ROOT"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAMS, ROOT = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
SMALL = ROOT / "config/examples/small.scanner.json"


def demo(folder, *words, programs=PROGRAMS):
    return subprocess.run([programs / "petacqd-demo", *words], cwd=folder, capture_output=True, text=True, check=False,
                          env=os.environ | {"HOME": str(folder)})


class Demo(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory(prefix="petacq-demo-")
        self.addCleanup(kept.cleanup)
        self.folder = pathlib.Path(kept.name)

    def test_a_run_its_report_and_its_image(self):
        done = demo(self.folder, "--scanner", SMALL, "--seconds", "0.5", "--rate", "100000", "--prepare")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        run = next(self.folder.glob("petacqd-demo/data/demo-*"))
        ledger = json.loads((run / "run.json").read_text(encoding="utf-8"))["ledger"]
        said = re.search(r"passed: (\d+) frames, (\d+) prompts, (\d+) delayeds, nothing lost", done.stdout)
        self.assertIsNotNone(said, done.stdout)
        self.assertEqual([int(number) for number in said.groups()],
                         [ledger["frames"]["received"], ledger["pairs"]["prompts_found"], ledger["pairs"]["delayeds_found"]])
        self.assertGreater(ledger["pairs"]["prompts_found"], 1000)
        for picture in ("image/projections.png", "plot/report.html"):
            self.assertTrue((run / picture).is_file(), picture)
            self.assertIn(str(run / picture), done.stdout)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["petacqd-demo"], "it writes elsewhere")

    def test_what_is_lost_is_said(self):
        # A petsim whose network loses datagrams.
        programs = self.folder / "bin"
        programs.mkdir()
        for name in ("petacqd", "petctl", "petcal"):
            (programs / name).symlink_to(PROGRAMS / name)
        (programs / "petlm").write_text("#!/bin/sh\n", encoding="utf-8")  # pictures take the most time
        (programs / "petacqd-demo").write_bytes((PROGRAMS / "petacqd-demo").read_bytes())
        (programs / "petsim").write_text(f'#!/bin/sh\n[ "$1" = compare ] || set -- "$@" --loss 0.05\nexec "{PROGRAMS}/petsim" "$@"\n', encoding="utf-8")
        for name in ("petacqd-demo", "petlm", "petsim"):
            (programs / name).chmod(0o755)
        done = demo(self.folder, "--scanner", SMALL, "--seconds", "0.2", "--rate", "50000", "--prepare", programs=programs)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"FAILED: datagrams lost [1-9]")

    def test_refused(self):
        for words, why in ((["--speed", "1"], "unknown: '--speed'"), (["--rate"], "--rate needs a value"),
                           (["--scanner", "nowhere.json"], "cannot read 'nowhere.json'")):
            done = demo(self.folder, *words)
            self.assertEqual((done.returncode, done.stdout), (64, ""), words)
            self.assertIn(why, done.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_version_and_help(self):
        version = demo(self.folder, "--version").stdout
        self.assertRegex(version, r"^petacqd-demo \d+\.\d+\.\d+\n$")
        for line in demo(self.folder, "--help").stdout.splitlines():
            self.assertLess(len(line), 200)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
