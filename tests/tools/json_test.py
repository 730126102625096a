"""--json of all commands: json_test.py FOLDER_OF_PROGRAMS ROOT

Each command prints one document on standard output, or one on each line, and nothing else. What it names as written is there, and
nothing else is new. Commands that a table of another test runs with --json are listed in ELSEWHERE."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAMS, ROOT = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
sys.path.append(str(ROOT / "tests/end_to_end/features"))
import acquisition  # noqa: E402  (found by the line above)

RUN = {"format": "own", "framing": "sequenced", "tags": "all", "mode": "single", "policy": "TakeAllGoods", "delayeds": "delayed_window", "gammas": "on",
       "split": "none"}
IMAGE = ("--size", 8, "--iterations", 1, "--subsets", 1, "--no-cache", "--backend", "cpu")
CSV = ("--scanner", "own-sequenced.json", "--format", "csv")

# Each may use what those before it have written. The options other than --json, and what the document must have.
TABLE = (
    ("petlm cut", ("a/r", "--from-s", 5.1, "--to-s", 5.2, "-o", "cut.plm"), {"kind": "coincidences"}),
    ("petlm cut", ("a/r", "--from-s", 50, "-o", "empty.plm"), {"records": 0}),
    ("petlm merge", ("cut.plm", "-o", "merged.plm"), {"kind": "coincidences"}),
    ("petlm gate", ("a/r", "--channel", 1, "--bins", 2), {"channel": 1}),
    ("petlm recover", ("broken.plm", "-o", "sound.plm"), {}),
    ("petlm recover", ("a/r", "-o", "recovered"), {}),
    ("petlm export", ("a/r", "--format", "csv", "-o", "pairs.csv"), {"format": "csv", "singles": 0}),
    ("petlm export", ("a/r", "--format", "castor", "-o", "castor"), {"format": "castor"}),
    ("petlm import", ("pairs.csv", *CSV, "-o", "imported.plm"), {"format": "csv"}),
    ("petlm import", ("pairs.csv", *CSV, "-o", "imported"), {"format": "csv"}),
    ("petlm resort", ("a/r", "-o", "resorted.plm"), {}),
    ("petlm resort", ("a/r", "-o", "parts", "--part", "1/1"), {"part": 1, "parts": 1}),
    ("petlm resort", ("a/r", "-o", "parts", "--join"), {}),
    ("petlm union", ("a/r", "b/r", "-o", "union"), {}),
    ("petlm plot", ("a/r",), {}),
    ("petlm image", ("a/r", "-o", "image", *IMAGE), {}),
    ("petlm frames", ("a/r", "-o", "frames", "--schedule", "2x0.1s", *IMAGE), {}),
    ("petlm info", ("a/r",), {}),
    ("petlm verify", ("a/r",), {}),
    ("petcal make", ("--scanner", "own-sequenced.json", "-o", "made.h5"), {}),
    ("petcal import", ("--scanner", "own-sequenced.json", "--position-table", "zeros", "--energy-factor", "factors", "--bins", 1,
                       "-o", "raw.h5"), {}),
    ("petcal apply", ("--scanner", "own-sequenced.json", "--calibration", "made.h5", "--bdm-ticks", "0:5", "-o", "applied.h5"), {}),
    ("petcal draw", ("--scanner", "own-sequenced.json", "-o", "scanner.html"), {}),
    ("petcal compare", ("made.h5", "applied.h5", "--scanner", "own-sequenced.json"), {}),
    ("petcal inspect", ("applied.h5", "--scanner", "own-sequenced.json"), {}),
)
WRITERS = {"petlm cut", "petlm merge", "petlm gate", "petlm recover", "petlm export", "petlm import", "petlm resort", "petlm union",
           "petlm plot", "petlm image", "petlm frames", "petcal make", "petcal import", "petcal apply", "petcal draw"}
LINES = (
    ("petlm dump", ("a/r", "--limit", 5), {"kind", "time", "dt", "crystal_a", "crystal_b", "energy_a", "energy_b"}),
    ("petlm dump", ("a/r", "--singles", "--limit", 5), {"time", "crystal", "energy"}),
    ("petlm dump", ("a/r", "--triples", "--limit", 2),
     {"kind", "time", "dt", "crystal_a", "crystal_b", "energy_a", "energy_b", "gamma", "gamma_dt", "gamma_crystal", "gamma_energy"}),
    ("petlm dump", ("a/r/tags.plm", "--limit", 5), {"time", "source", "channel", "kind", "value"}),
    ("petctl frames", ("own-sequenced-all.pcap", "--config", "a.json", "--count", 5),
     {"from", "framing", "bytes", "listed", "malformed", "source", "sequence", "flags", "end_of_stream", "frames_sent", "frames"}),
)
# By tests of petctl with a server, of calibrations and of measurements.
ELSEWHERE = {"petlm nema", "petlm nema sensitivity", "petlm nema scatter", "petlm nema count-rate", "petlm nema resolution",
             "petlm nema image-quality", "petlm tracers", "petlm lifetime", "petcal derive", "petcal derive crystals",
             "petcal derive energy", "petcal derive time", "petcal derive normalisation", "petcal derive activity", "petcal check"}
# They show what changes, or pass it on.
WITHOUT = {"petctl watch", "petctl relay"}
GROUPS = {"petlm nema", "petcal derive"}  # of commands


def help_of(*words):
    return subprocess.run([PROGRAMS / words[0], *words[1:], "--help"], capture_output=True, text=True, check=True).stdout


def commands_of(*words):
    listed = help_of(*words).partition("Subcommands:\n")[2]
    names = [line.split()[0] for line in listed.splitlines() if line.startswith("  ") and not line.startswith("   ")]
    return [" ".join([*words, name]) for name in names if name != "help"]


class Json(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        kept = tempfile.TemporaryDirectory(prefix="petacq-json-")
        cls.addClassCleanup(kept.cleanup)
        cls.site = acquisition.Site(str(PROGRAMS), str(ROOT), kept.name)
        capture = cls.site.capture(RUN)[0]
        for directory in ("a", "b"):
            cls.site.replay(cls.site.configure(RUN, directory), capture, "r")
        whole = pathlib.Path(cls.file("a/r/coincidences.plm")).read_bytes()
        pathlib.Path(cls.file("broken.plm")).write_bytes(whole[: len(whole) * 2 // 3])
        shape = json.loads(cls.site.program("petcal", "inspect", "--json", "own.h5", "--scanner", "own-sequenced.json"))
        positions = 1
        for size in shape["position_table"]["shape"]:
            positions *= size
        pathlib.Path(cls.file("zeros")).write_bytes(bytes(positions))
        crystals = 1
        for size in shape["energy_factor"]["shape"][:-1]:
            crystals *= size
        pathlib.Path(cls.file("factors")).write_bytes(b"\x00\x00\x80\x3e" * crystals)  # 0.25

    @classmethod
    def file(cls, name):
        return cls.site.file(name)

    def files(self):
        root = pathlib.Path(self.site.directory)
        return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}

    def run_with_json(self, command, words):
        program, *names = command.split()
        return self.site.run_program(program, *names, *words, "--json")

    def test_each_command_prints_one_document(self):
        for command, words, expected in TABLE:
            with self.subTest(command=command, words=words):
                before = self.files()
                done = self.run_with_json(command, words)
                self.assertEqual(done.returncode, 0, done.stderr)
                document = json.loads(done.stdout)
                self.assertLessEqual(expected.items(), document.items())
                if command not in WRITERS:
                    continue
                named = {os.path.relpath(self.file(name), self.site.directory) for name in document["files"]}
                self.assertLessEqual(named, self.files())
                # Parts of a run belong to the files that are named.
                beside = {name for name in self.files() - before - named if not name.startswith("parts/")}
                self.assertEqual(beside, set())
                for warning in document["warnings"]:
                    self.assertIn(warning, done.stderr)

    def test_the_document_has_what_the_text_says(self):
        text = self.site.petlm("cut", "a/r", "--from-s", 5.1, "--to-s", 5.2, "-o", "text.plm")
        done = json.loads(self.site.petlm("cut", "a/r", "--from-s", 5.1, "--to-s", 5.2, "-o", "json.plm", "--json"))
        self.assertGreater(done["records"], 100)
        self.assertEqual(text, f"text.plm: {done['records']} of {done['records_of_input']} coincidences\n")
        outside = self.run_with_json("petlm cut", ("a/r", "--from-s", 50, "-o", "outside.plm"))
        (warning,) = json.loads(outside.stdout)["warnings"]
        self.assertIn("lie outside of it", warning)
        table = self.site.petlm("gate", "a/r", "--channel", 1, "--bins", 2, "-o", "phases").splitlines()
        bins = json.loads(self.site.petlm("gate", "a/r", "--channel", 1, "--bins", 2, "-o", "again", "--json"))["bins"]
        self.assertEqual([[float(cell) for cell in line.split(",")] for line in table[-2:]],
                         [[bin_[name] for name in table[-3].split(",")] for bin_ in bins])
        recovered = json.loads(self.site.petlm("recover", "broken.plm", "-o", "half.plm", "--json"))["recovered"]
        self.assertEqual([file["state"] for file in recovered], ["truncated"])
        self.assertEqual(recovered[0]["records"], json.loads(self.site.petlm("info", "--json", "half.plm"))["records"])

    def test_lines_of_json(self):
        for command, words, keys in LINES:
            with self.subTest(command=command, words=words):
                done = self.run_with_json(command, words)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                objects = [json.loads(line) for line in done.stdout.splitlines()]
                self.assertTrue(objects)
                for one in objects:
                    self.assertEqual(set(one), keys)

    def test_lines_of_json_have_the_records(self):
        for options in (("--kind", "prompt"), ("--singles",), ("--seconds",)):
            header, *rows = self.site.petlm("dump", "a/r", *options).splitlines()
            objects = [json.loads(line) for line in self.site.petlm("dump", "a/r", *options, "--json").splitlines()]
            self.assertEqual(len(objects), len(rows))
            for row, one in zip(rows, objects):
                self.assertEqual(list(one), header.split(","))
                for cell, value in zip(row.split(","), one.values()):
                    if value is None:
                        self.assertIn(cell.lstrip("-"), ("nan", "inf"))
                    else:
                        self.assertEqual(value if isinstance(value, str) else float(cell), cell if isinstance(value, str) else value)
        (second, *_) = self.site.petlm("dump", "a/r", "--seconds", "--field", "module_singles", "--json").splitlines()
        self.assertIsInstance(json.loads(second)["module_singles"], list)

    def test_a_refusal_prints_no_document(self):
        for command, words in (("petlm cut", ("nowhere", "-o", "x.plm")), ("petlm dump", ("nowhere",)), ("petcal make", ("-o", "x.h5")),
                               ("petctl frames", ("nowhere.pcap", "--config", "a.json"))):
            done = self.run_with_json(command, words)
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(done.stdout, "")
            self.assertNotEqual(done.stderr, "")

    def test_no_command_lacks_it(self):
        tried = {command for command, *_ in (*TABLE, *LINES)}
        for program in ("petlm", "petcal", "petctl"):
            for command in commands_of(program):
                for one in commands_of(*command.split()) if command in GROUPS else [command]:
                    has = " --json " in help_of(*one.split())
                    self.assertEqual(has, one not in WITHOUT, one)
                    if program != "petctl":
                        self.assertIn(one, tried | ELSEWHERE)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
