"""Bare datagrams that come twice: no number tells, but the payload does.

    copies_test.py DIRECTORY_OF_PROGRAMS SOURCE"""

import json
import os
import socket
import struct
import subprocess
import sys
import unittest

from daemon import Site, eventually

BIN, SOURCE = sys.argv[1:3]
CODE = "duplicates_suspected"
BOARDS = 4


def datagrams(count, first=0):
    """(time in ticks of 15.625 ps, payload) of hits in pairs, 1 ms apart."""
    sent = []
    for i in range(first, first + count):
        ticks = (1000 + i) * 64_000_000
        sent.append((ticks, b"".join(struct.pack(">BBQBBHbB", 0xA0, bdm, ticks + bdm, 10 + i % 40, 20, 511, 25, 5)
                                     for bdm in (i % 12, i % 12 + 12))))
    return sent


def packet(number, payload, tag):
    """Ethernet, as it passes an interface: `tag` of a VLAN, or none."""
    udp = struct.pack(">HHHH", 2000 + number % BOARDS, 9601, 8 + len(payload), 0) + payload
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), number & 0xFFFF, 0, 64, 17, 0, bytes([10, 0, 0, 2]),
                     bytes([10, 0, 0, 1]))
    return bytes(12) + (struct.pack(">HH", 0x8100, tag) if tag else b"") + b"\x08\x00" + ip + udp


def write_pcap(file, sent, copied):
    """`copied(i)`: datagram i also passes the interface of a VLAN, 20 us later, as a capture of all interfaces has it."""
    with open(file, "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1))
        for i, (ticks, payload) in enumerate(sent):
            for k, tag in enumerate((0, 7) if copied(i) else (0,)):
                us = int(ticks * 15.625e-6) + 20 * k + 1_700_000_000_000_000
                frame = packet(i, payload, tag)
                out.write(struct.pack("<IIII", us // 1_000_000, us % 1_000_000, len(frame), len(frame)) + frame)


def site():
    with open(os.path.join(SOURCE, "config", "examples", "small.scanner.json"), encoding="utf-8") as file:
        scanner = json.load(file)
    scanner.pop("sources")
    return Site(BIN, scanner, {"coincidence": {"window_ticks": 320}, "sources": {"accept_any": True},
                               "receive": {"framing": "bare"}})


class Copies(unittest.TestCase):
    def replay(self, here, run, copied):
        file = here.file(run + ".pcap")
        write_pcap(file, datagrams(3000), copied)
        done = here.run_program("petacqd", "--config", here.file("petacqd.json"), "--run", run, "--replay", file)
        ledger = here.run_json(run)["ledger"]
        self.assertTrue(ledger["closed"])
        self.assertEqual(ledger["frames"]["received"], 2 * ledger["datagrams"]["accepted"])  # nothing is discarded
        codes = {reason["code"]: reason["message"] for reason in here.run_json(run)["verdict"]["reasons"]}
        return done, ledger["datagrams"][CODE], codes, here.run_json(run)["verdict"]["state"]

    def test_captures(self):
        with site() as here:
            done, found, codes, _ = self.replay(here, "clean", lambda i: False)
            self.assertEqual((done.returncode, found), (0, 0))
            self.assertNotIn(CODE, codes)
            done, found, codes, state = self.replay(here, "twice", lambda i: True)
            self.assertEqual((done.returncode, state), (65, "bad"))
            self.assertGreaterEqual(found, 2900)
            self.assertIn("seem to have come twice", codes[CODE])
            self.assertIn("capture on one interface instead of any", done.stderr)
            done, found, codes, state = self.replay(here, "some", lambda i: i % 20 == 0)
            self.assertEqual((done.returncode, state), (0, "doubtful"))
            self.assertTrue(140 <= found <= 150, found)
            self.assertIn("come twice", done.stderr)

    def test_numbered_datagrams_are_not_suspected(self):
        with site() as here:
            here.configuration["receive"]["framing"] = "sequenced"
            here.write("petacqd.json", here.configuration)
            write_pcap(here.file("a.pcap"), [(ticks, struct.pack(">4sBBHQ", b"PETF", 1, 0, 3, i) + payload)
                                             for i, (ticks, payload) in enumerate(datagrams(500))], lambda i: True)
            counted = here.replay("r", here.file("a.pcap"))["ledger"]["datagrams"]
            self.assertEqual((counted["duplicate"], counted[CODE]), (500, 0))

    def test_live(self):
        with site() as here:
            def send(port, _):
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
                    out.connect(("127.0.0.1", port))
                    sent = 0

                    def reasons():
                        nonlocal sent
                        for _, payload in datagrams(50, sent):
                            out.send(payload)
                            out.send(payload)
                        sent += 50
                        return [r["message"] for r in here.status()["health"]["reasons"] if r["code"] == CODE]
                    self.assertIn("seem to have come twice", eventually(reasons)[0])

                    listen = [os.path.join(BIN, "petctl"), "--socket", here.file("control.sock"), "doctor", "--seconds", "1"]
                    with subprocess.Popen(listen, stdout=subprocess.PIPE, text=True) as doctor:
                        while doctor.poll() is None:
                            reasons()
                        self.assertIn("seem to have come twice", doctor.stdout.read())
                    self.assertGreater(here.status()["total"]["datagrams"][CODE], 0)
            run = here.live("r", send)
            self.assertEqual(run["verdict"]["state"], "bad")
            self.assertIn(CODE, [reason["code"] for reason in run["verdict"]["reasons"]])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
