"""Mistakes and changes of the network against the real daemon, in a network of its own.

    ports_test.py DIRECTORY_OF_PROGRAMS SOURCE      Exit status 77: this user may not make a network."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
from control import status_of  # noqa: E402  (found by the line above)
from eventually import eventually  # noqa: E402  (found by the line above)

MAY_NOT = 77


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


class Place:
    """Configurations beside each other, and the daemons started from them."""

    def __init__(self):
        self._directory = tempfile.TemporaryDirectory()
        self.here = self._directory.name
        examples = os.path.join(SOURCE, "config", "examples")
        shutil.copy(os.path.join(examples, "small.scanner.json"), self.here)
        self.program("petcal", "make", "--scanner", "small.scanner.json", "--output", "cal.h5")
        self._daemons = []

    def program(self, name, *arguments):
        command = [os.path.join(BIN, name), *arguments]
        return subprocess.run(command, cwd=self.here, capture_output=True, text=True, check=False)

    def configure(self, name, sockets):
        os.makedirs(os.path.join(self.here, name), exist_ok=True)
        document = {"scanner": "small.scanner.json", "calibration": "cal.h5", "data_dir": name,
                    "receive": {"sockets": sockets, "lock_memory": False, "receive_buffer_bytes": 1 << 20,
                                "batch_count": 32, "batch_bytes": 262144},
                    "coincidence": {"window_ns": 5}, "control": {"socket": name + ".sock"},
                    "http": {"listen": ""}, "health": {"min_disk_free_bytes": 0}}
        with open(os.path.join(self.here, name + ".json"), "w", encoding="utf-8") as file:
            json.dump(document, file)

    def check(self, name):
        return self.program("petacqd", "--config", name + ".json", "--check")

    def start(self, name):
        with open(os.path.join(self.here, name + ".log"), "w", encoding="utf-8") as log:
            daemon = subprocess.Popen([os.path.join(BIN, "petacqd"), "--config", name + ".json"], cwd=self.here,
                                      stderr=log)
        self._daemons.append(daemon)
        eventually(lambda: daemon.poll() is not None or self.program("petctl", "--socket", name + ".sock",
                                                                       "status").returncode == 0)
        return daemon

    def status(self, name):
        return status_of(os.path.join(self.here, name + ".sock"))

    def codes(self, name):
        return [reason["code"] for reason in self.status(name)["health"]["reasons"]]

    def received(self, name):
        return self.status(name)["total"]["datagrams"]["received"]

    def close(self):
        for daemon in self._daemons:
            daemon.terminate()
            daemon.wait()
        self._directory.cleanup()


def send(to, port, interface=None, source=None):
    family = socket.AF_INET6 if ":" in to else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as out:
        if interface:
            request = socket.inet_aton("0.0.0.0") * 2 + socket.if_nametoindex(interface).to_bytes(4, sys.byteorder)
            out.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, request)
        if source:
            out.bind((source, 0))
        out.sendto(b"an unknown sender", (to, port))


class PortsTest(unittest.TestCase):
    def setUp(self):
        self.place = Place()
        self.addCleanup(self.place.close)

    def test_two_daemons_never_share_a_port(self):
        for count in (1, 2):
            for address in ("127.0.0.1", "0.0.0.0", "::"):
                with self.subTest(count=count, address=address):
                    port = 9700 + count
                    if address == "127.0.0.1":
                        self.place.configure(f"one{count}", [{"address": address, "port": port, "count": count}])
                        self.place.start(f"one{count}")
                    self.place.configure("two", [{"address": address, "port": port, "count": count}])
                    checked = self.place.check("two")
                    self.assertEqual(checked.returncode, 74)
                    self.assertIn("taken by another petacqd", checked.stdout)
                    self.assertNotEqual(self.place.start("two").wait(), 0)
                    self.assertEqual(self.place.check(f"one{count}").returncode, 0)

    def test_multicast_that_cannot_be_received_as_configured_is_refused(self):
        group = {"port": 9703, "multicast_group": "239.1.2.3", "multicast_interface": "lo"}
        for change, reason in (({"count": 2}, "each socket would get every datagram"),
                               ({"address": "127.0.0.1"}, "receives nothing that is sent to the group")):
            with self.subTest(change=change):
                self.place.configure("refused", [group | change])
                checked = self.place.check("refused")
                self.assertEqual(checked.returncode, 78)
                self.assertIn(reason, checked.stderr)

    def test_each_entry_of_a_port_gets_its_own_groups(self):
        entry = {"port": 9704, "multicast_interface": "lo"}
        self.place.configure("groups", [entry | {"multicast_group": ["239.1.2.3", "239.1.2.4"]},
                                        entry | {"multicast_group": "239.1.2.5", "multicast_sources": ["127.0.0.2"]}])
        self.assertEqual(self.place.check("groups").returncode, 0)
        self.place.start("groups")
        for group in ("239.1.2.3", "239.1.2.4", "239.1.2.6"):  # the last is of nobody
            send(group, 9704, "lo")
        send("239.1.2.5", 9704, "lo", "127.0.0.2")
        send("239.1.2.5", 9704, "lo", "127.0.0.3")  # not of the sources
        send("127.0.0.1", 9704)
        eventually(lambda: self.place.received("groups") >= 4)
        self.assertEqual(self.place.received("groups"), 4)

    def test_a_group_is_joined_again_when_its_interface_comes_back(self):
        self.place.configure("board", [{"port": 9705, "multicast_group": "239.1.2.3", "multicast_interface": "board0",
                                        "free_bind": True}, {"address": "10.9.0.1", "port": 9706, "free_bind": True}])
        self.place.start("board")
        for _ in range(2):
            eventually(lambda: "multicast_not_joined" in self.place.codes("board"))
            ip("link", "add", "board0", "type", "veth", "peer", "name", "board1")
            ip("addr", "add", "10.9.0.1/24", "dev", "board0")
            for interface in ("board0", "board1"):
                ip("link", "set", interface, "up")
            eventually(lambda: "multicast_not_joined" not in self.place.codes("board"))
            for group, port in (("239.1.2.3", 9705), ("10.9.0.1", 9706)):
                before = self.place.received("board")
                send(group, port, "board0")
                eventually(lambda: self.place.received("board") == before + 1)  # noqa: B023
            ip("link", "del", "board0")

    def test_ipv6(self):
        self.place.configure("six", [{"address": "::", "port": 9707},
                                     {"address": "::", "port": 9708, "multicast_group": "ff15::17",
                                      "multicast_interface": "lo"}])
        self.assertEqual(self.place.check("six").returncode, 0)
        self.place.start("six")
        send("::1", 9707)
        eventually(lambda: self.place.received("six") == 1)
        eventually(lambda: "[::1]:" in json.dumps(self.place.status("six")))
        send("127.0.0.1", 9707)
        eventually(lambda: self.place.received("six") == 2)
        eventually(lambda: '"127.0.0.1:' in json.dumps(self.place.status("six")))


def main():
    if os.environ.get("PORTS_TEST_NETWORK") != "own":
        probe = subprocess.run(["unshare", "-rn", "ip", "link", "set", "lo", "up"], capture_output=True, check=False) \
            if shutil.which("unshare") and shutil.which("ip") else None
        if probe is None or probe.returncode != 0:
            sys.exit(MAY_NOT)
        os.environ["PORTS_TEST_NETWORK"] = "own"
        os.execvp("unshare", ["unshare", "-rn", sys.executable, *sys.argv])
    ip("link", "set", "lo", "up")
    ip("route", "add", "224.0.0.0/4", "dev", "lo")
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])


if __name__ == "__main__":
    BIN, SOURCE = map(os.path.abspath, sys.argv[1:3])
    main()
