"""petacq.Daemon with a real petacqd, and with one that answers wrongly."""

import contextlib
import json
import os
import socket
import subprocess
import threading
import unittest
from datetime import datetime, timedelta, timezone
from unittest import mock

import support

import petacq


class RealDaemon(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(support.Daemon("live"))
        self.daemon = petacq.Daemon(self.server.socket)

    def test_a_run_from_start_to_stop(self):
        daemon = self.daemon
        self.assertEqual(daemon.status()["state"], "idle")
        assay = datetime.now(timezone(timedelta(hours=2))) - timedelta(minutes=110)
        started = daemon.start(
            "live", note="from Python", nuclide="F-18", activity_MBq=3, assay_utc=assay, bed_mm=-2.5, keys={"tracer": "FDG"}
        )
        self.assertEqual(started["path"], str(self.server.data / "live"))
        with self.assertRaisesRegex(petacq.RefusedError, "^run live is in progress; stop it first$") as refused:
            daemon.start("another")
        self.assertEqual(refused.exception.code, -32000)
        sender = subprocess.Popen(self.server.simulation(0.4))
        prompts = []
        for status in daemon.subscribe(0.1):
            self.assertEqual(status["run"]["id"], "live")
            prompts.append(status["ledger"]["pairs"]["prompts_found"])
            if sender.poll() is not None and prompts[-1] > 0:
                break
        self.assertEqual(prompts, sorted(prompts))
        self.assertEqual(daemon.ledger()["run"], "live")
        with self.assertRaisesRegex(petacq.RefusedError, "the run in progress is live, not other"):
            daemon.stop("other")
        stopped = daemon.stop("live")
        self.assertEqual((stopped["run"], stopped["failure"], stopped["ledger_closed"]), ("live", None, True))
        run = petacq.open_run(started["path"])
        self.assertEqual(run.note, "from Python")
        self.assertAlmostEqual(run.operator["activity_at_start_MBq"], 1.5, delta=0.01)
        self.assertEqual(run.operator["keys"], {"tracer": "FDG"})
        self.assertEqual(stopped["prompts"], run.ledger["pairs"]["prompts_found"])
        (listed,) = daemon.runs()
        self.assertEqual(listed, petacq.list_runs(self.server.data)[0])
        self.assertEqual((listed.id, listed.state, listed.prompts), ("live", "complete", stopped["prompts"]))

    def test_refusals_carry_the_reason_of_the_daemon(self):
        with self.assertRaisesRegex(petacq.RefusedError, "no run is in progress"):
            self.daemon.stop()
        for name, parameters in {
            "nuclide": {"nuclide": "Xx-1"},
            "activity_MBq": {"activity_MBq": -1},
            "duration_s": {"duration_s": 0},
            "run": {"run": "../up"},
            "interval_s": None,
        }.items():
            with self.subTest(name=name), self.assertRaises(petacq.RefusedError) as refused:
                self.daemon.subscribe(0.01) if parameters is None else self.daemon.start(**parameters)
            self.assertIn(name, str(refused.exception))
            self.assertEqual(refused.exception.code, -32000 if name == "run" else -32602)
        with self.assertRaises(petacq.RefusedError) as refused:
            self.daemon.call("explode")
        self.assertEqual(refused.exception.code, -32601)
        with self.assertRaisesRegex(ValueError, "time zone"):
            self.daemon.start(nuclide="F-18", activity_MBq=1, assay_utc=datetime(2026, 1, 1))
        for interval in (float("nan"), object()):
            with self.assertRaisesRegex(ValueError, "not JSON"):
                self.daemon.subscribe(interval)
        self.assertEqual(self.daemon.status()["state"], "idle")

    def test_runs_in_pages(self):
        for number in range(5):
            folder = self.server.data / f"r{number}"
            folder.mkdir(exist_ok=True)
            document = {"state": "complete", "start_utc": f"2025-01-0{number + 1}T00:00:00.000Z"}
            (folder / "run.json").write_text(json.dumps(document))
        everything = [run.id for run in self.daemon.runs()]
        self.assertEqual(everything[:5], [f"r{number}" for number in range(5)])
        with mock.patch("petacq.daemon._MOST_RUNS", 2):
            self.assertEqual([run.id for run in self.daemon.runs()], everything)
            self.assertEqual([run.id for run in self.daemon.runs(3)], everything[-3:])
        with self.assertRaises(ValueError):
            self.daemon.runs(0)

    def test_the_socket_of_the_environment_and_a_daemon_that_has_gone(self):
        with mock.patch.dict(os.environ, {"PETACQ_SOCKET": str(self.server.socket)}):
            daemon = petacq.Daemon()
        updates = daemon.subscribe(0.1)
        self.assertEqual(next(updates)["state"], "idle")
        self.assertEqual(next(updates)["state"], "idle")
        self.server.process.terminate()
        with self.assertRaisesRegex(petacq.DaemonError, "closed the connection"):
            list(updates)
        self.server.process.wait(support.PATIENCE_S)
        with self.assertRaisesRegex(petacq.DaemonError, f"cannot reach petacqd at {self.server.socket}: "):
            daemon.status()


class WrongDaemon(unittest.TestCase):
    """Each test says what the daemon does with the one connection that it gets."""

    def serve(self, *answers: bytes, patient: bool = False, timeout_s: float = support.PATIENCE_S) -> petacq.Daemon:
        path = support.scratch() / "wrong.sock"
        path.unlink(missing_ok=True)
        listener = self.enterContext(contextlib.closing(socket.socket(socket.AF_UNIX)))
        listener.bind(str(path))
        listener.listen()
        over = threading.Event()

        def answer():
            with contextlib.suppress(OSError):
                connection, _ = listener.accept()
                with connection:
                    connection.recv(1 << 16)
                    for part in answers:
                        connection.sendall(part)
                    if patient:
                        over.wait(support.PATIENCE_S)

        thread = threading.Thread(target=answer)
        thread.start()
        self.addCleanup(thread.join, support.PATIENCE_S)
        self.addCleanup(over.set)
        return petacq.Daemon(path, timeout_s)

    def test_an_answer_in_pieces(self):
        text = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"state": "idle", "more": "x" * 200_000}}).encode()
        daemon = self.serve(*(text[at : at + 997] for at in range(0, len(text), 997)), b"\n")
        self.assertEqual(daemon.status()["state"], "idle")

    def test_answers_that_are_none(self):
        for content, words in {
            b"": "closed the connection",
            b'{"jsonrpc":"2.0","id":1,"result":{}': "closed the connection",
            b"\n": "not JSON",
            b"\xff\xfe\n": "not JSON",
            b"[" * 100_000 + b"\n": "not JSON",
            b"[]\n": "no JSON-RPC message",
            b"7\n": "no JSON-RPC message",
            b"{}\n": "no answer to status",
            b'{"id":2,"result":{}}\n': "no answer to status",
            b'{"id":1,"result":[]}\n': "expected an object",
        }.items():
            with self.subTest(content=content[:40]), self.assertRaisesRegex(petacq.DaemonError, words):
                self.serve(content).status()

    def test_an_error_that_says_little(self):
        with self.assertRaisesRegex(petacq.RefusedError, "too many clients") as refused:
            self.serve(b'{"id":null,"error":{"code":-32000,"message":"too many clients"}}\n').status()
        self.assertEqual(refused.exception.code, -32000)
        with self.assertRaises(petacq.RefusedError) as refused:
            self.serve(b'{"id":1,"error":{}}\n').status()
        self.assertEqual(refused.exception.code, 0)

    def test_no_list_of_runs(self):
        for result in ({}, {"data_dir": "/d", "earlier": 0, "runs": [{}]}, {"data_dir": "/d", "earlier": 0, "runs": 7}):
            with self.assertRaisesRegex(petacq.DaemonError, "no list of runs"):
                self.serve(json.dumps({"id": 1, "result": result}).encode() + b"\n").runs()

    def test_time_outs(self):
        with self.assertRaisesRegex(petacq.DaemonTimeoutError, "did not answer within 0.05 s") as late:
            self.serve(patient=True, timeout_s=0.05).status()
        self.assertIsInstance(late.exception, TimeoutError)
        with self.assertRaises(petacq.DaemonTimeoutError):
            self.serve(b'{"half', patient=True).stop(timeout_s=0.05)
        updates = self.serve(b'{"id":1,"result":{}}\n', patient=True, timeout_s=3).subscribe(0.1)
        self.assertEqual(next(updates), {})
        with self.assertRaises(petacq.DaemonTimeoutError):
            next(updates)
        for wrong in (0, -1, float("nan")):
            with self.assertRaises(ValueError):
                petacq.Daemon("socket", timeout_s=wrong)

    def test_other_notifications(self):
        updates = self.serve(b'{"id":1,"result":{}}\n{"method":"other"}\n').subscribe()
        next(updates)
        with self.assertRaisesRegex(petacq.DaemonError, "no status"):
            next(updates)

    def test_paths_on_which_nobody_listens(self):
        path = support.scratch() / "nobody.sock"
        path.write_text("")
        for wrong in (path, support.scratch() / "none.sock", "x" * 200):
            with self.assertRaisesRegex(petacq.DaemonError, "cannot reach petacqd at "):
                petacq.Daemon(wrong).status()


if __name__ == "__main__":
    unittest.main()
