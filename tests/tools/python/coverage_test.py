"""What files of records cover: closing descriptions, the times and rules that follow, and files of petacqd 1.0."""

import importlib.util
import json
import math
import unittest
import warnings
from datetime import datetime, timezone

import numpy as np
import support

import petacq
from petacq.layout import COINCIDENCE

SECOND = 64_000_000_000  # ticks of the small scanner
START = 3600 * SECOND + 12345
ANCHOR_NS = 1_800_000_000_250_000_000


def covered(*intervals, **members):
    return {
        "version": 1,
        "tick_ps": 15.625,
        "intervals": [list(interval) for interval in intervals],
        "anchor": {"ticks": START, "unix_ns": ANCHOR_NS},
        "activity": {"nuclide": "Rb-82", "half_life_s": 75.45, "branching_ratio": 0.9543, "activity_MBq": 20.0},
        "rules": {"coincidence": {"window_ticks": 320, "min_module_difference": 2}, "energy": {"lower_keV": 400}},
        "loss": {"live": 0.5, "seconds_complete": True},
        "origin": {"runs": [{"run_id": "small", "directory": "/data/small"}], "calibration_sha256": "ab"},
        **members,
    }


def records(*times):
    out = np.zeros(len(times), COINCIDENCE)
    out["time"] = times
    out["crystal_b"] = 1000
    return out.tobytes()


def put(name, content):
    path = support.scratch() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


class CoverageOfFiles(unittest.TestCase):
    def test_the_closing_description_replaces_members_of_the_header(self):
        coverage = covered((START, START + 5 * SECOND))
        for zstd in (False, True) if importlib.util.find_spec("zstandard") else (False,):
            content = support.listmode(
                records(START, START + 1, START + 2), [1, 2], zstd=zstd, coverage=covered(), note="first",
                closing=json.dumps({"coverage": coverage, "late": "ü"}).encode(),
            )
            file = petacq.PlmFile(put("closing.plm", content), verify=True)
            self.assertTrue(file.complete)
            self.assertEqual((len(file), file.description["note"], file.description["late"]), (3, "first", "ü"))
            self.assertAlmostEqual(file.coverage.duration_s, 5)
        plain = support.listmode(records(START), [1], closing=b"")
        self.assertTrue(petacq.PlmFile(put("none.plm", plain)).complete)

    def test_a_damaged_closing_description_is_an_incomplete_file(self):
        closing = json.dumps({"coverage": covered((START, START + 5 * SECOND))}).encode()
        content = support.listmode(records(START, START + 1), [1, 1], closing=closing)
        at = content.index(closing)
        broken = content[: at + 3] + b"#" + content[at + 4 :]
        for bad in (broken, support.listmode(records(START, START + 1), [1, 1], closing=b"[1, 2]"), content[:at]):
            with self.assertWarns(petacq.IncompleteWarning):
                file = petacq.PlmFile(put("broken.plm", bad))
            self.assertEqual((len(file), file.complete), (2, False))

    def test_times_decay_and_rules(self):
        part = (START + 140 * SECOND, START + 160 * SECOND)
        coverage = petacq.PlmFile(put("cut.plm", support.listmode(records(part[0]), [1], coverage=covered(part)))).coverage
        self.assertAlmostEqual(coverage.duration_s, 20)
        self.assertEqual((coverage.reference, coverage.span), (START, part))
        self.assertAlmostEqual(coverage.since_reference_s(part[0]), 140)
        self.assertEqual(coverage.utc_of(START), datetime.fromtimestamp(ANCHOR_NS / 1e9, timezone.utc))
        self.assertAlmostEqual(coverage.start.timestamp(), ANCHOR_NS / 1e9 + 140, places=5)
        self.assertAlmostEqual(coverage.stop.timestamp(), ANCHOR_NS / 1e9 + 160, places=5)
        times = np.linspace(140, 160, 200_001)
        slow = 1 / np.mean(np.exp2(-times / 75.45))
        self.assertTrue(math.isclose(coverage.decay_factor(), slow, rel_tol=1e-6))
        self.assertEqual(coverage.decay_factor(0), 1)
        self.assertEqual(coverage.rules["coincidence"]["min_module_difference"], 2)
        self.assertEqual((coverage.live, coverage.runs[0].run_id, coverage.calibration_sha256), (0.5, "small", "ab"))
        self.assertEqual(coverage.unknown, ())

    def test_phases_count_their_own_intervals(self):
        phase = [(START + k * SECOND, START + k * SECOND + SECOND // 4) for k in range(8)]
        file = petacq.PlmFile(put("phase.plm", support.listmode(records(START), [1], coverage=covered(*phase))))
        self.assertAlmostEqual(file.coverage.duration_s, 2)
        parts = [1 / petacq.Coverage.from_json(covered(interval)).decay_factor() for interval in phase]
        self.assertAlmostEqual(1 / file.coverage.decay_factor(), sum(parts) / len(parts), places=12)

    def test_parts_of_a_run_are_united(self):
        folder = support.scratch() / "parts"
        middle = START + 2 * SECOND
        for number, (start, end) in enumerate(((START, middle), (middle, START + 3 * SECOND)), 1):
            content = support.listmode(records(start, end - 1), [2], part=number, coverage=covered((start, end)))
            put(f"parts/coincidences-000{number}.plm", content)
        (folder / "run.json").write_text(json.dumps({"run_id": "small"}))
        run = petacq.open_run(folder)
        self.assertEqual(run.coverage.intervals, ((START, START + 3 * SECOND),))
        self.assertAlmostEqual(run.duration_s, 3)
        self.assertEqual((run.start_ticks, run.stop_ticks), (START, START + 3 * SECOND))
        overlapping = covered((middle - 1, START + 3 * SECOND))
        put("parts/coincidences-0002.plm", support.listmode(records(middle), [1], part=2, coverage=overlapping))
        with self.assertRaisesRegex(petacq.CoverageError, "the same time"):
            petacq.open_run(folder).duration_s  # noqa: B018

    def test_a_run_in_progress(self):
        coverage = covered(intervals=None)
        put("going/coincidences.plm", support.listmode(records(START + SECOND), [1], coverage=coverage, closing=b"{}")[:-64])
        (support.scratch() / "going" / "run.json").write_text(json.dumps({"run_id": "small", "coverage": coverage}))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", petacq.IncompleteWarning)
            run = petacq.open_run(support.scratch() / "going")
            self.assertEqual((run.start_ticks, run.stop_ticks), (START, START + SECOND))
        self.assertAlmostEqual(run.start.timestamp(), ANCHOR_NS / 1e9, places=5)
        self.assertIsNone(run.stop)

    def test_what_is_no_coverage(self):
        for document in (None, [], {"version": 2}, covered((5, 4)), covered((0, -1)), covered(rules=3) | {"tick_ps": "x"}):
            with self.assertRaises(petacq.CoverageError):
                petacq.Coverage.from_json(document)


class FilesOf10(unittest.TestCase):
    def test_a_run_that_waited_for_its_data(self):
        run = {"run_id": "small", "start_ticks": 0, "stop_ticks": 3604 * SECOND, "expected_randoms": {"data_s": 4.0},
               "start_utc": "2026-11-20T18:45:00.000Z", "stop_utc": "2026-11-20T19:45:04.000Z",
               "configuration": {"coincidence": {"window_ticks": 320}, "energy": {"lower_keV": 350}}}
        coverage = petacq.Coverage.of({"tick_ps": 15.625, "run_id": "small"}, run, True)
        self.assertAlmostEqual(coverage.duration_s, 4)
        self.assertEqual(coverage.start, datetime(2026, 11, 20, 19, 45, tzinfo=timezone.utc))
        self.assertEqual((coverage.coincidence["window_ticks"], coverage.energy["lower_keV"]), (320, 350))
        cut = petacq.Coverage.of({"tick_ps": 15.625, "cut": {"from_ticks": 3601 * SECOND, "to_ticks": 3602 * SECOND}}, run)
        self.assertAlmostEqual(cut.duration_s, 1)
        phase = petacq.Coverage.of({"tick_ps": 15.625, "gate": {"live_ticks": SECOND}}, run)
        self.assertAlmostEqual(phase.duration_s, 1)
        self.assertEqual(petacq.Coverage.of({"tick_ps": 15.625}, run, True).unknown, ())

    def test_what_is_not_told_is_a_warning(self):
        path = put("alone/part.plm", support.listmode(records(START), [1], window_ticks=320))
        file = petacq.PlmFile(path)
        with self.assertWarnsRegex(petacq.UnknownWarning, "max_ring_difference.*when its records were taken"):
            coverage = file.coverage
        self.assertEqual((coverage.intervals, coverage.duration_s), (None, 0))

    def test_a_cut_by_petlm(self):
        run = petacq.open_run(support.small_run())
        start = run.start_ticks + SECOND // 10
        target = support.scratch() / "real-cut.plm"
        support.call("petlm", "cut", "--from-ticks", start, "--to-ticks", start + SECOND // 5, "-o", target, run.path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", petacq.UnknownWarning)
            cut = petacq.PlmFile(target)
            if cut.coverage.intervals is None:  # not beside its run
                target = target.replace(run.path / "part.plm")
                cut = petacq.PlmFile(target)
        self.assertAlmostEqual(cut.coverage.duration_s, 0.2)
        (run.path / "part.plm").unlink(missing_ok=True)


if __name__ == "__main__":
    unittest.main()
