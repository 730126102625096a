"""Two daemons of a pair: one is killed in a run, and the other one names it until it has joined again.

peer_test.py DIRECTORY_OF_PROGRAMS SOURCE
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.request

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
from control import status_of  # noqa: E402  (found by the line above)
from eventually import PATIENCE_S, eventually  # noqa: E402  (found by the line above)

BIN, SOURCE = sys.argv[1:3]
SCANNER = os.path.join(SOURCE, "config", "examples", "small.scanner.json")


def program(name, *arguments):
    return subprocess.run([os.path.join(BIN, name), *arguments], capture_output=True, text=True, check=True).stdout


class Host:
    """A directory with a configuration, and the daemon in it."""

    def __init__(self, directory, calibration, peer):
        os.mkdir(directory)
        self._file = os.path.join(directory, "petacqd.json")
        self._log_file = os.path.join(directory, "log")
        self._socket = os.path.join(directory, "control.sock")
        self._configuration = {
            "scanner": SCANNER, "calibration": calibration, "data_dir": directory, "control": {"socket": self._socket},
            "receive": {"sockets": [{"address": "127.0.0.1", "port": 0}], "lock_memory": False, "batch_count": 8,
                        "batch_bytes": 262144},
            "coincidence": {"window_ticks": 320, "delay_ticks": 6400}, "peer": {"url": peer},
            "http": {"listen": "127.0.0.1:0"}}
        self.start()

    def start(self):
        with open(self._file, "w", encoding="utf-8") as file:
            json.dump(self._configuration, file)
        with open(self._log_file, "w", encoding="utf-8") as log:
            self.daemon = subprocess.Popen([os.path.join(BIN, "petacqd"), "--config", self._file], stderr=log)
        eventually(lambda: " ready: " in self.log() or self.daemon.poll() is not None)
        if self.daemon.poll() is not None:
            raise RuntimeError(self.log())
        target = "127.0.0.1:" + re.search(r"http: listening on \S+, port (\d+)", self.log())[1]
        self._configuration["http"]["listen"] = target  # also of the next start
        self.url = f"http://{target}"
        self.port = self.status()["sockets"][0]["port"]

    def log(self):
        with open(self._log_file, encoding="utf-8") as log:
            return log.read()

    def petctl(self, *arguments):
        return program("petctl", "--socket", self._socket, *arguments)

    def status(self):
        return status_of(self._socket)

    def missing(self):
        """The messages that say so."""
        return [reason["message"] for reason in self.status()["health"]["reasons"] if reason["code"] == "peer_missing"]

    def sends(self):
        """Frames, from now on."""
        return subprocess.Popen([os.path.join(BIN, "petsim"), "--scanner", SCANNER, "--calibration", self._configuration["calibration"],
                                 "--quiet", "--threads", "1", "--cylinder", "0,0,0,10,20,0.1", "--sources", "4", "--rate", "20000",
                                 "--duration-s", "600", "--to", f"127.0.0.1:{self.port}"])

    def end(self):
        self.daemon.kill()
        self.daemon.wait()


class Peer(unittest.TestCase):
    def play(self, process):
        """Until the end of the test."""
        def end():
            process.kill()
            process.wait()
        self.addCleanup(end)
        return process

    def test_the_missing_half_is_named_until_it_has_joined(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        directory = temporary.name
        calibration = os.path.join(directory, "c.h5")
        program("petcal", "make", "--scanner", SCANNER, "--output", calibration)
        other = Host(os.path.join(directory, "b"), calibration, "")
        self.addCleanup(other.end)
        host = Host(os.path.join(directory, "a"), calibration, other.url)
        self.addCleanup(host.end)
        self.assertIsNone(other.status()["peer"])
        self.assertEqual(subprocess.run(["ps", "-L", "-o", "comm=", "-p", str(other.daemon.pid)], capture_output=True, text=True,
                                        check=True).stdout.split().count("peer"), 0)
        self.play(host.sends())
        self.play(other.sends())
        for one in (host, other):
            one.petctl("start", "--run", "r")
        eventually(lambda: host.status()["peer"]["state"] == "recording")
        self.assertEqual(host.missing(), [])
        self.assertEqual(host.status()["peer"]["run"], "r")

        other.daemon.kill()
        other.daemon.wait()
        message = eventually(host.missing)[0]
        self.assertIn("run r is recorded by this host alone: 127.0.0.1 cannot be asked for ", message)
        self.assertRegex(message, r"Connection refused.*`petctl --hosts \S+\+127.0.0.1 join`")
        status = host.status()
        self.assertEqual((status["peer"]["state"], status["health"]["state"]), ("unreachable", "degraded"))
        self.assertIn("unreachable, " + other.url, host.petctl("status"))
        with urllib.request.urlopen(host.url + "/metrics", timeout=PATIENCE_S) as answer:
            metrics = answer.read().decode()
        self.assertIn('petacqd_peer{state="unreachable"} 1\n', metrics)
        self.assertIn('petacqd_health_reasons{reason="peer_missing",severity="degraded"} 1\n', metrics)

        other.start()
        self.play(other.sends())
        other.petctl("start", "--run", "r-2")
        eventually(lambda: host.status()["peer"]["state"] == "recording" and not host.missing())
        self.assertEqual(host.status()["peer"]["run"], "r-2")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
