"""petacq.list_runs against petctl runs, in a directory with runs of every kind."""

import errno
import fcntl
import json
import os
import shutil
import unittest
from unittest import mock

import support

import petacq

FIELDS = ("state", "prompts", "delayeds", "singles", "triples", "delayed_triples", "reason", "ledger_closed", "bytes")


def put(folder, document, reserve=False):
    folder.mkdir(parents=True)
    text = document if isinstance(document, str) else json.dumps(document)
    (folder / "run.json").write_text(text, encoding="utf-8")
    if reserve:
        (folder / ".reserve").write_bytes(b"")


class ListRuns(unittest.TestCase):
    def setUp(self):
        self.data = support.scratch() / "runs"
        shutil.rmtree(self.data, ignore_errors=True)
        self.data.mkdir()

    def test_as_petctl_lists_them(self):
        source = support.small_run()
        with support.Daemon("listed") as daemon:
            shutil.rmtree(daemon.data)
            shutil.copytree(source, daemon.data / "small")
            document = json.loads((source / "run.json").read_text())
            for name, changes in {
                "triples": {
                    "configuration": {"listmode": {"write_coincidences": True}, "gammas": {"lower_keV": 700}},
                    "ledger": {**document["ledger"], "gammas": {"triples": 7, "delayed": 2}},
                },
                "singles": {"configuration": {"listmode": {"write_coincidences": False, "write_singles": True}}},
                "crash": {"state": "running", "stop_utc": None, "ledger": None, "start_utc": "2026-01-31T12:00:00.000Z"},
                "odd": {"state": 7, "start_utc": "yesterday", "ledger": [], "configuration": None},
            }.items():
                put(daemon.data / name, {**document, **changes}, reserve=name == "crash")
            put(daemon.data / "broken", '{"state": ')
            put(daemon.data / "list", "[]")
            (daemon.data / "no-run").mkdir()
            (daemon.data / "file").write_text("x")
            support.call("petctl", "start", "--run", "now", env=daemon.env)
            listed = petacq.list_runs(daemon.data)
            told = json.loads(support.call("petctl", "runs", "--json", env=daemon.env))["runs"]
            asked = petacq.Daemon(daemon.socket).runs()
            support.call("petctl", "stop", env=daemon.env)
        by_name = {run["run"]: run for run in told}
        self.assertEqual(sorted(run.id for run in listed), sorted(by_name))
        self.assertEqual([run.id for run in asked], [run["run"] for run in told])
        for run in listed:
            expected = by_name[run.id]
            with self.subTest(run=run.id):
                for field in FIELDS:
                    unreadable = field == "reason" and run.state == "unreadable"  # each in its own words
                    if run.id != "odd" and not unreadable and not (run.id == "now" and field == "bytes"):
                        self.assertEqual(getattr(run, field), expected[field], field)
        states = {run.id: run.state for run in listed}
        self.assertEqual((states["now"], states["crash"], states["broken"]), ("running", "interrupted", "unreadable"))

    def test_the_length_is_detector_time_whatever_the_clock_of_the_host_does(self):
        covered = {"version": 1, "tick_ps": 1e6, "anchor": {"ticks": 500, "unix_ns": 1_700_000_000_000_000_000}}
        times = {"start_utc": "2026-01-02T12:00:00.000Z", "stop_utc": "2026-01-02T11:00:05.000Z"}  # set back by an hour
        for name, document in {
            "new": {**times, "coverage": {**covered, "intervals": [[500, 1500], [2500, 5_000_500]]}},
            "waiting": {**times, "coverage": {**covered, "intervals": None}},
            "old": {**times, "scanner": {"tick_ps": 1e6}, "start_ticks": 0, "stop_ticks": 5_000_000},
            "late": {
                **{**times, "scanner": {"tick_ps": 1e6}, "start_ticks": 0, "stop_ticks": 9_000_000},
                "expected_randoms": {"data_s": 4.0},  # the boards began to send 5 s after the start
            },
            "wrong": {**times, "coverage": {"version": 7}},
        }.items():
            put(self.data / name, {"state": "complete", **document})
        listed = {run.id: run for run in petacq.list_runs(self.data)}
        self.assertEqual({name: run.duration_s and round(run.duration_s, 9) for name, run in listed.items()},
                         {"new": 4.999, "waiting": None, "old": 5.0, "late": 4.0, "wrong": None})
        self.assertEqual(listed["new"].start.timestamp(), 1_700_000_000)
        self.assertEqual(listed["new"].stop.timestamp(), 1_700_000_005)
        self.assertIsNone(listed["waiting"].stop)
        self.assertEqual(listed["late"].start.isoformat(), "2026-01-02T11:00:01+00:00")
        self.assertEqual(listed["wrong"].start.isoformat(), "2026-01-02T12:00:00+00:00")

    def test_order_and_what_is_listed(self):
        for name, start in {"b": "2026-01-02T00:00:00Z", "a": "2026-01-03T00:00:00Z", "c": "2026-01-02T00:00:00.5Z"}.items():
            put(self.data / name, {"state": "complete", "start_utc": start})
        put(self.data / "z", {})
        self.assertEqual([run.id for run in petacq.list_runs(self.data)], ["z", "b", "c", "a"])
        self.assertIsNone(petacq.list_runs(self.data)[0].state)

    def test_a_run_is_interrupted_once_nobody_writes_it(self):
        put(self.data / "one", {"state": "running"}, reserve=True)
        with open(self.data / "one" / ".reserve", "rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            self.assertEqual(petacq.list_runs(self.data)[0].state, "running")
            self.assertEqual(petacq.open_run(self.data / "one").state, "running")
        self.assertEqual(petacq.list_runs(self.data)[0].state, "interrupted")
        self.assertEqual(petacq.open_run(self.data / "one").state, "interrupted")
        (self.data / "one" / ".reserve").unlink()  # a copy elsewhere
        self.assertEqual(petacq.list_runs(self.data)[0].state, "interrupted")

    def test_open(self):
        listed = petacq.list_runs(support.small_run().parent)
        run = next(run for run in listed if run.id == "small").open(verify=True)
        self.assertEqual(run.id, "small")

    def test_what_the_user_may_not_look_into_and_files_that_vanish(self):
        put(self.data / "one", {"state": "complete"})
        size = (self.data / "one" / "run.json").stat().st_size
        (self.data / "one" / "run.json.new").write_text("x")
        (self.data / "lost+found").mkdir()
        status_of = os.stat

        def refuses(path, *arguments, **options):
            if "lost+found" in str(path):
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            if str(path).endswith(".new"):
                raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path))
            return status_of(path, *arguments, **options)

        with mock.patch("os.stat", refuses):  # root may look anywhere
            (run,) = petacq.list_runs(self.data)
            self.assertEqual((run.id, run.state, run.bytes), ("one", "complete", size))
            with self.assertRaisesRegex(petacq.RunError, "not a run.*it holds runs: .*one$"):
                petacq.open_run(self.data)

    def test_directories_that_cannot_be_read(self):
        self.assertEqual(petacq.list_runs(self.data), [])
        (self.data / "file").write_text("x")
        for wrong in (self.data / "none", self.data / "file"):
            with self.assertRaisesRegex(petacq.RunError, "expected a directory with runs"):
                petacq.list_runs(wrong)


if __name__ == "__main__":
    unittest.main()
