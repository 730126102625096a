"""The tap with asyncio, and across connections: what comes, and what is said to be missing."""

import asyncio
import contextlib
import itertools
import queue
import signal
import socket
import subprocess
import threading
import time
import unittest

import numpy as np
import support
from tap_test import line, message, singles

import petacq


numbers = itertools.count()


class Server:
    """A socket that serves one connection after the other. Each is a list of bytes; it closes when all are sent."""

    def __init__(self, test, *connections):
        self.path = support.scratch() / f"{next(numbers)}.tap"
        self._connections = connections
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(self.path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        test.addCleanup(self._end)

    def _serve(self):
        for parts in self._connections:
            client, _ = self._listener.accept()
            with client, client.makefile("rb") as stream:
                stream.readline()
                for part in parts:
                    client.sendall(part)

    def _end(self):
        self._thread.join(support.PATIENCE_S)
        self._listener.close()


def records(first, count, run=1, dropped=0):
    """``count`` singles, every second of the run from number ``first`` on."""
    return message(2, singles(*range(first, first + 2 * count, 2)).tobytes(), run=run, first=first, records=count, dropped=dropped)


def collect(tap):
    """Of each array what a loop sees."""
    return [seen(tap, array) for array in tap]


async def collect_async(tap):
    return [seen(tap, array) async for array in tap]


def seen(tap, array):
    return (tap.run, tap.first_record, len(array), tap.missing, tap.reconnects)


class Asyncio(unittest.TestCase):
    def test_what_comes_is_what_a_loop_gets(self):
        parts = [line(), message(1, b"r-1"), records(4, 3), records(10, 4000), message(3), message(1, b"r-2", run=2), records(0, 1, 2)]
        loop = collect(petacq.tap(Server(self, parts).path, "singles", 2))
        server = Server(self, parts)
        self.assertEqual(asyncio.run(collect_async(petacq.Tap(server.path, "singles", 2))), loop)
        self.assertEqual(loop, [("r-1", 4, 3, 0, 0), ("r-1", 10, 4000, 0, 0), ("r-2", 0, 1, 0, 0)])

    def test_a_loop_takes_up_what_another_has_left(self):
        async def first(tap):
            async for _ in tap:
                return tap.first_record

        server = Server(self, [line(), message(1, b"r-1"), records(0, 1), records(2, 1), records(4, 1)])
        tap = petacq.Tap(server.path, "singles", 2)
        self.assertEqual(asyncio.run(first(tap)), 0)
        self.assertEqual([tap.first_record for _ in tap], [2, 4])

    def test_one_run(self):
        server = Server(self, [line(), message(1, b"r-1"), records(0, 1), message(3), message(1, b"r-2", run=2)])
        tap = petacq.Tap(server.path, "singles", 2, one_run=True, reconnect_s=1)
        self.assertEqual(len(asyncio.run(collect_async(tap))), 1)
        self.assertFalse(tap.running)

    def test_broken_streams(self):
        for broken, reason in (
            (records(0, 4)[:-1], "within a message"),
            (records(0, 4)[:64], "within a message"),  # as long as a header
            (records(0, 4)[:20], "within a message"),
            (message(2, singles(1).tobytes(), records=2), "expected 32 bytes, found 16"),
            (message(2, magic=b"X" * 8), "begins with"),
        ):
            for collected in (collect, lambda tap: asyncio.run(collect_async(tap))):
                server = Server(self, [line(), broken])
                with self.subTest(reason=reason), self.assertRaisesRegex(petacq.TapError, reason):
                    collected(petacq.Tap(server.path, "singles", 2))

    def test_timeout_and_cancelling(self):
        release = threading.Event()
        path = support.scratch() / "silent.tap"
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(str(path))
            listener.listen()

            def serve():
                for _ in range(2):
                    clients.append(listener.accept()[0])
                    clients[-1].sendall(line())
                release.wait(support.PATIENCE_S)

            clients = []
            thread = threading.Thread(target=serve)
            thread.start()
            with self.assertRaises(TimeoutError):
                asyncio.run(collect_async(petacq.Tap(path, "singles", 2, timeout=0.05)))

            async def cancelled():
                task = asyncio.ensure_future(collect_async(tap))
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task

            tap = petacq.Tap(path, "singles", 2)
            asyncio.run(cancelled())
            with self.assertRaises(OSError):
                next(iter(tap))
            release.set()
            thread.join()
            for client in clients:
                client.close()


class Reconnected(unittest.TestCase):
    CONNECTIONS = (
        [line(), message(1, b"r-1", run=4), records(100, 5, 4), records(114, 1, 4, dropped=2)],
        [line(), message(1, b"r-1", run=4), records(150, 2, 4), records(154, 1, 4)[:70]],  # cut off within a message
        [],  # closed without an answer, as by a daemon that ends
        [line(), message(1, b"r-1", run=4), records(154, 1, 4), message(3), message(1, b"r-2", run=5), records(0, 3, 5)],
        [line(), message(1, b"r-9", run=1), records(8, 1), message(3), message(1, b"r-10", run=2), records(0, 2, 2), message(3)],
    )
    SEEN = [
        ("r-1", 100, 5, 0, 0),
        ("r-1", 114, 1, 2, 0),  # 110 and 112 were dropped
        ("r-1", 150, 2, 17, 1),  # 116 to 148
        ("r-1", 154, 1, 0, 2),
        ("r-2", 0, 3, 0, 2),
        ("r-9", 8, 1, 4, 3),  # connected again, it had missed the beginning of the run
        ("r-10", 0, 2, 0, 3),
    ]

    def check(self, collected):
        server = Server(self, *self.CONNECTIONS)
        tap = petacq.Tap(server.path, "singles", 2, reconnect_s=0.001)
        found = []
        for one in collected(tap):
            found.append(one)
            if len(found) == len(self.SEEN):
                break
        self.assertEqual(found, self.SEEN)
        self.assertEqual((tap.missed, tap.unended, tap.reconnects), (23, ("r-2",), 3))
        tap.close()

    def test_in_a_loop(self):
        self.check(lambda tap: (seen(tap, array) for array in tap))

    def test_with_asyncio(self):
        def collected(tap):
            async def run():
                async for array in tap:
                    found.append(seen(tap, array))
                    if len(found) == len(self.SEEN):
                        break

            found = []
            asyncio.run(run())
            return found

        self.check(collected)

    def test_a_refusal_ends_it(self):
        server = Server(self, [line(), message(1, b"r"), records(0, 1)], [b'{"error": "no singles"}\n'])
        with self.assertRaisesRegex(petacq.TapError, "no singles"):
            asyncio.run(collect_async(petacq.Tap(server.path, "singles", 2, reconnect_s=0.001)))

    def test_wrong_intervals(self):
        for wrong in (0, -1, float("nan")):
            with self.assertRaisesRegex(ValueError, "reconnect_s .*: expected seconds above 0"):
                petacq.Tap("/none", reconnect_s=wrong)


class Restarted(unittest.TestCase):
    def test_a_daemon_that_is_killed_and_started_again(self):
        """The stream goes on with the next run, whole, and names the run that was cut off."""
        got = queue.Queue()

        async def read(tap):
            async for array in tap:
                got.put((tap.run, tap.missing, array))

        def until(run):
            while (item := got.get(timeout=support.PATIENCE_S))[0] != run:
                pass
            return item

        daemon = support.Daemon("restarted", tap={"socket": "r.tap"})
        with daemon:
            tap = petacq.Tap(daemon.site / "r.tap", "singles", 3, reconnect_s=0.01)
            loop = asyncio.new_event_loop()
            task = loop.create_task(read(tap))

            def run_loop():
                with contextlib.suppress(asyncio.CancelledError):
                    loop.run_until_complete(task)

            thread = threading.Thread(target=run_loop)
            thread.start()
            support.call("petctl", "start", "--run", "first", env=daemon.env)
            sender = subprocess.Popen(daemon.simulation(support.PATIENCE_S))
            until("first")
            daemon.process.send_signal(signal.SIGKILL)
            daemon.process.wait(support.PATIENCE_S)
            sender.terminate()
            sender.wait(support.PATIENCE_S)
        with daemon:
            end = time.monotonic() + support.PATIENCE_S
            while petacq.Daemon(daemon.socket).status()["tap"]["clients"] == 0 and time.monotonic() < end:
                time.sleep(0.01)
            support.call("petctl", "start", "--run", "second", env=daemon.env)
            subprocess.run(daemon.simulation(0.3), check=True, timeout=support.PATIENCE_S)
            support.call("petctl", "stop", env=daemon.env)
            expected = petacq.open_run(daemon.data / "second").singles[::3]
            arrays = [until("second")]
            while sum(len(item[2]) for item in arrays) < len(expected):
                arrays.append(until("second"))
        loop.call_soon_threadsafe(task.cancel)
        thread.join(support.PATIENCE_S)
        loop.close()
        np.testing.assert_array_equal(np.concatenate([item[2] for item in arrays]), expected)
        self.assertEqual([item[1] for item in arrays], [0] * len(arrays))
        self.assertEqual((tap.unended, tap.missed), (("first",), 0))
        self.assertGreaterEqual(tap.reconnects, 1)


if __name__ == "__main__":
    unittest.main()
