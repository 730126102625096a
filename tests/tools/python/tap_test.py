"""The live tap: against the real daemon, and against servers that break the protocol."""

import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
import unittest
import unittest.mock

import numpy as np
import support

import petacq
from petacq.tap import Tap, tap

ANSWER = {
    "format": "petacqd tap",
    "version": 1,
    "kind": "singles",
    "prescale": 2,
    "record_bytes": 16,
    "fields": [["time", "<u8"], ["crystal", "<u4"], ["energy", "<f4"]],
    "tick_ps": 10.0,
    "crystals": 9,
    "scanner": "s",
}


@contextlib.contextmanager
def daemon(name, **changes):
    """petacqd in the site of small_run(), with a tap: the socket of the tap, and a function that makes a run."""
    site = support.small_run().parents[1]
    configuration = json.loads((site / "petacqd.json").read_text(encoding="utf-8"))
    configuration["tap"] = {"socket": f"{name}.tap"}
    configuration["control"] = {"socket": f"{name}.sock"}
    configuration["listmode"].update(changes)
    (site / f"{name}.json").write_text(json.dumps(configuration), encoding="utf-8")
    env = {**os.environ, "PETACQ_SOCKET": str(site / f"{name}.sock")}
    with open(site / f"{name}.log", "wb") as log:
        process = subprocess.Popen([support.program("petacqd"), "--config", str(site / f"{name}.json")], stderr=log)

    def run(run_id):
        support.call("petctl", "start", "--run", run_id, env=env)
        support.call(
            *("petsim", "--crystals", "surface", "--scanner", site / "small.scanner.json", "--calibration", site / "small.h5", "--quiet"),
            *("--to", f"127.0.0.1:{port}", "--duration-s", 0.3, "--rate", 200000, "--sources", 4, "--threads", 1),
        )
        support.call("petctl", "stop", env=env)
        return petacq.open_run(site / "data" / run_id)

    try:
        port = support._port(process, site / f"{name}.log", env)
        yield site / f"{name}.tap", run
    finally:
        process.terminate()
        process.wait(support.PATIENCE_S)


@contextlib.contextmanager
def server(*parts):
    """A socket at which the first client gets these bytes."""
    path = support.scratch() / "fake.tap"
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen()

    def serve():
        client, _ = listener.accept()
        with client, client.makefile("rb") as stream:
            requests.append(stream.readline())
            for part in parts:
                client.sendall(part)

    requests = []
    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield path, requests
    finally:
        thread.join()
        listener.close()


def line(**changes):
    return json.dumps({**ANSWER, **changes}).encode() + b"\n"


def message(what, payload=b"", run=1, first=0, records=0, dropped=0, magic=b"PETACQTP"):
    return struct.pack("<8sIIQQQQQQ", magic, what, len(payload), run, first, records, 0, 0, dropped) + payload


def singles(*crystals):
    return np.array([(100 + c, c, 511.0) for c in crystals], petacq.SINGLE)


class Live(unittest.TestCase):
    def test_every_nth_record_of_each_run(self):
        with daemon("every") as (path, run):
            got = {}
            taps = [tap(path, prescale=5), tap(path, "singles", 3), tap(path)]

            def read(which):
                for records in which:
                    got.setdefault((which, which.run), []).append(records)

            threads = [threading.Thread(target=read, args=(t,)) for t in taps]
            for thread in threads:
                thread.start()
            runs = [run("tap-1"), run("tap-2")]
            end = time.monotonic() + support.PATIENCE_S
            while any((t.run, t.running) != ("tap-2", False) for t in taps) and time.monotonic() < end:
                time.sleep(0.01)
        for thread in threads:  # the daemon has ended
            thread.join(support.PATIENCE_S)
        for r in runs:
            for which, expected in zip(taps, (r.coincidences[::5], r.singles[::3], r.coincidences[:])):
                records = np.concatenate(got[which, r.id])
                self.assertEqual(records.dtype, expected.dtype)
                np.testing.assert_array_equal(records, expected)
                self.assertGreater(len(records), 100)
        for which in taps:
            self.assertEqual((which.dropped, which.run, which.run_number, which.running), (0, "tap-2", 2, False))

    def test_one_run(self):
        with daemon("one") as (path, run):
            thread = threading.Thread(target=run, args=("tap-one",))
            with tap(path, prescale=7, one_run=True, timeout=support.PATIENCE_S) as connection:
                self.assertEqual(connection.description["scanner"], "small")
                thread.start()
                first = [connection.first_record for _ in connection]
            thread.join()
            self.assertTrue(first)
            self.assertTrue(all(n % 7 == 0 for n in first))

    def test_the_daemon_tells_the_path(self):
        with daemon("told") as (path, run), unittest.mock.patch.dict(os.environ):
            os.environ["PETACQ_SOCKET"] = str(path.with_suffix(".sock"))
            self.assertEqual(petacq.Daemon().status()["tap"]["socket"], str(path))
            thread = threading.Thread(target=run, args=("tap-told",))
            with tap(kind="singles", one_run=True, timeout=support.PATIENCE_S) as connection:
                thread.start()
                self.assertGreater(sum(len(records) for records in connection), 100)
            thread.join()
        with unittest.mock.patch.object(sys.modules["petacq.tap.tap"], "Daemon") as none:
            none.return_value.socket = "/c.sock"
            for status in ({"tap": None}, {}, {"tap": {"clients": 1}}):  # the last: of an earlier version
                none.return_value.status.return_value = status
                with self.assertRaisesRegex(petacq.errors.TapError, "/c.sock: this daemon tells of no tap"):
                    tap()

    def test_refusals(self):
        with daemon("refuse", write_singles=False) as (path, _):
            with self.assertRaisesRegex(petacq.errors.TapError, "listmode.write_singles is false"):
                tap(path, "singles")
            with self.assertRaisesRegex(petacq.errors.TapError, "no triples, since there is no section gammas"):
                tap(path, "triples")
            with self.assertRaisesRegex(petacq.errors.TapError, 'expected "coincidences", "singles" or "triples", found "tags"'):
                tap(path, "tags")
            for wrong in (0, -1, 2**33):
                with self.assertRaisesRegex(petacq.errors.TapError, f"from 1 to 4294967296, found {wrong}"):
                    tap(path, prescale=wrong)
            with self.assertRaises(TypeError):
                tap(path, prescale=1.5)
            with self.assertRaisesRegex(petacq.TapError, "of the petacqd tap, found None"):
                tap(path.with_name("refuse.sock"))  # the control socket
        with self.assertRaisesRegex(FileNotFoundError, "nobody.tap"):
            tap(support.scratch() / "nobody.tap")


class Protocol(unittest.TestCase):
    def test_messages(self):
        parts = [
            line(more="ignored"),
            message(1, b"r-1"),
            message(2, singles(1, 2).tobytes(), first=4, records=2, dropped=3),
            message(9, b"from the future"),
            message(3, dropped=8),
            message(1, "läuft".encode(), run=2),
        ]
        with server(*parts) as (path, requests):
            connection = Tap(path, "singles", np.int64(2))
            records = list(connection)
        self.assertEqual(json.loads(requests[0]), {"kind": "singles", "prescale": 2})
        self.assertEqual(len(records), 1)
        np.testing.assert_array_equal(records[0], singles(1, 2))
        records[0]["energy"] = 0  # an array of its own
        self.assertEqual((connection.first_record, connection.dropped), (4, 0))
        self.assertEqual((connection.run, connection.run_number, connection.running), ("läuft", 2, True))
        connection.close()

    def test_broken_streams(self):
        payload = singles(1).tobytes()
        for parts, reason in [
            ([], "closed it"),
            ([b"{}"], "closed it"),
            ([b"nonsense\n"], "line of JSON"),
            ([b"[1]\n"], "JSON object"),
            ([line(version=2)], "version 1 of the petacqd tap"),
            ([line(format="other")], "found 'other'"),
            ([line(record_bytes=20)], "records of 20 bytes"),
            ([line(fields=[["time", "nonsense"]])], "description of the records: TypeError"),
            ([b'{"format": "petacqd tap", "version": 1}\n'], "description of the records: KeyError"),
            ([b'{"error": "too many"}\n'], "too many"),
            ([line(), message(2, payload, records=1, magic=b"X" * 8)], "begins with"),
            ([line(), message(2, payload, records=2)], "expected 32 bytes, found 16"),
            ([line(), message(2, payload, records=1)[:-1]], "within a message"),
            ([line(), message(2, payload, records=1)[:20]], "within a message"),
        ]:
            with self.subTest(reason=reason), server(*parts) as (path, _):
                with self.assertRaisesRegex(petacq.errors.TapError, reason):
                    list(tap(path, "singles"))

    def test_the_reason_is_known_even_if_the_daemon_has_closed_before_the_request(self):
        closed = threading.Event()

        class Late:
            """A prescale that is known only when the connection has been closed."""

            def __index__(self):
                closed.wait(support.PATIENCE_S)
                return 1

        def serve():
            client, _ = listener.accept()
            with client:
                client.sendall(b'{"error": "too many clients, at most 8"}\n')
            closed.set()

        path = support.scratch() / "full.tap"
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(str(path))
            listener.listen()
            thread = threading.Thread(target=serve)
            thread.start()
            with self.assertRaisesRegex(petacq.TapError, "full.tap: too many clients, at most 8"):
                tap(path, "singles", Late())
            thread.join()

    def test_a_loop_can_be_left_and_taken_up(self):
        parts = [line(), message(1, b"r")]
        parts += [message(2, singles(i).tobytes(), first=2 * i, records=1) for i in range(4)]
        with server(*parts) as (path, _), tap(path, "singles") as connection:
            for _ in connection:
                break
            self.assertEqual(connection.first_record, 0)
            self.assertEqual([connection.first_record for _ in connection], [2, 4, 6])

    def test_timeout(self):
        path = support.scratch() / "silent.tap"
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.addCleanup(listener.close)
        listener.bind(str(path))
        listener.listen()
        with self.assertRaises(TimeoutError):
            tap(path, "singles", timeout=0.05)


if __name__ == "__main__":
    unittest.main()
