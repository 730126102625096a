"""petctl frames of what boards send and of captures, compared with the bytes, and with Wireshark's dissector.

    frames_test.py DIRECTORY_OF_PROGRAMS SOURCE SUBJECT      Exit status 77: tshark is not installed."""

import math
import os
import re
import shutil
import struct
import subprocess
import sys
import unittest

from daemon import Site
from foreign_test import BIN, COUNTED, COUNT_TICKS, PERIOD, SOURCE, counted_datagram, example, own_frame, write_pcap

MISSING = 77
SECONDS = 0.02
HEAD = re.compile(r"datagram from (\S+:\d+): (\w+), (\d+) bytes"
                  r"(?:, source (\d+), sequence (\d+), flags 0x(..)(?: \(end of stream\))?)?"
                  r"(?:, (\d+) frames?)?(?:, of which the first (\d+) are known)?(.*)")
FRAME = re.compile(r" +(\d+)  ((?:[0-9a-f]{2} ){15}[0-9a-f]{2})  time (\d+) ticks \((\d+\.\d{9}) s\)  (.*)")
HIT = re.compile(r"energy (\d+) ADC  DU (\d+)  BDM (\d+)  x (\d+)  y (\d+)  "
                 r"temperature (-?\d+\.\d{4}) degrees C(?:  invalid: (.+))?")
TAG = re.compile(r"tag: channel (\d+)  kind (\d+)  value (\d+)")


def payloads(file):
    """Of a capture of petsim: nanoseconds, raw IPv4."""
    with open(file, "rb") as opened:
        data = opened.read()
    at = 24
    while at < len(data):
        size = struct.unpack_from("<I", data, at + 8)[0]
        yield data[at + 16 + 28:at + 16 + size]
        at += 16 + size


def parsed(text):
    """[(match of the head, [frame])] of what petctl frames prints; a frame is a dictionary of its fields."""
    datagrams = []
    for line in text.splitlines():
        if head := HEAD.fullmatch(line):
            datagrams.append((head, []))
        elif line.startswith("  as sent: "):
            continue
        else:
            number, octets, ticks, seconds, fields = FRAME.fullmatch(line).groups()
            frame = {"number": int(number), "bytes": bytes.fromhex(octets), "time": int(ticks), "s": float(seconds)}
            if tag := TAG.fullmatch(fields):
                frame.update(zip(("channel", "kind", "value"), map(int, tag.groups())))
            else:
                *numbers, degrees, why = HIT.fullmatch(fields).groups()
                frame.update(zip(("energy", "du", "bdm", "x", "y"), map(int, numbers)), degrees=float(degrees), why=why)
            datagrams[-1][1].append(frame)
    return datagrams


def fields_of(octets, scanner, modules):
    """What those 16 bytes mean: docs/reference/wire-format.md."""
    first, bdm, ticks, x, y, energy, whole, last = struct.unpack(">BBQBBHbB", octets)
    good_tail = last & 15 == 5
    if first >> 4 == 0xB and good_tail:
        return {"time": ticks, "channel": first & 15, "kind": bdm, "value": struct.unpack_from(">I", octets, 10)[0]}
    limits = scanner["geometry"]
    valid = (first >> 4 == 0xA and good_tail and bdm in modules and first & 15 < limits["du_count"] and
             max(x, y) < limits["position_size"])
    return {"time": ticks, "du": first & 15, "bdm": bdm, "x": x, "y": y, "energy": energy,
            "degrees": whole + (last >> 4) / 16, "valid": valid}


class Here(Site):
    """A site with a capture of petsim that has tags and damaged frames."""

    def simulate(self, *options):
        self.program("petsim", "--crystals", "surface", "--scanner", self.file("scanner.json"), "--calibration", self.file("c.h5"), "--duration-s",
                     str(SECONDS), "--start-time-s", "100", "--rate", "1e5", "--cycle", "0.005", "--tag-trigger", "2", "--corrupt",
                     "marker:0.3", "--corrupt", "bdm:0.3", "--corrupt", "x:0.3", "--write", self.file("a.pcap"), "--to",
                     "127.0.0.1:9601", "--quiet", *options)

    def frames(self, *options, count=10**6):
        return self.program("petctl", "frames", self.file("a.pcap"), "--config", self.file("petacqd.json"), "--count", str(count),
                            *options)


def site(framing="sequenced", **more):
    rules = {"coincidence": {"window_ticks": 320},
             "receive": {"framing": framing, "sockets": [{"address": "127.0.0.1", "port": 9601}]}}
    scanner = example("small.scanner.json")
    if framing == "bare":
        scanner.pop("sources")
        rules["sources"] = {"accept_any": True}
    rules["receive"].update(more)
    return Here(BIN, scanner, rules), scanner


class Frames(unittest.TestCase):
    def same(self, shown, sent, scanner, header, modules_of):
        self.assertEqual(len(shown), len(sent))
        invalid = 0
        for (head, frames), payload in zip(shown, sent):
            self.assertEqual((int(head[3]), int(head[7])), (len(payload), len(payload[header:]) // 16))
            if header:
                _, _, flags, source, sequence = struct.unpack_from(">4sBBHQ", payload)
                self.assertEqual((int(head[4]), int(head[5]), int(head[6], 16)), (source, sequence, flags))
            modules = modules_of(head)
            for number, frame in enumerate(frames):
                octets = payload[header + 16 * number:header + 16 * number + 16]
                self.assertEqual((frame["number"], frame["bytes"]), (number, octets))
                expected = fields_of(octets, scanner, modules)
                if "valid" in expected:
                    self.assertEqual(frame["why"] is None, expected.pop("valid"), frame)
                    invalid += frame["why"] is not None
                self.assertEqual({key: frame[key] for key in expected}, expected)
                self.assertAlmostEqual(frame["s"], frame["time"] * scanner["tick_ps"] * 1e-12, places=8)
            self.assertEqual(len(frames), len(payload[header:]) // 16)
        self.assertGreater(invalid, 3)

    def test_a_capture_of_sequenced_datagrams(self):
        here, scanner = site()
        with here:
            here.simulate()
            text = here.frames()
            modules = {source["id"]: set(source["bdms"]) for source in scanner["sources"]}
            shown = parsed(text)
            self.same(shown, list(payloads(here.file("a.pcap"))), scanner, 16, lambda head: modules[int(head[4])])
            self.assertTrue(any("channel" in frame for _, frames in shown for frame in frames))
            self.assertRegex(text, r"invalid: .*marker \d+, expected")
            few = parsed(here.frames("--source", "1", count=7))
            self.assertEqual({head[4] for head, _ in few}, {"1"})
            self.assertEqual(sum(len(frames) for _, frames in few), 7)

    def test_a_capture_of_bare_datagrams(self):
        here, scanner = site("bare")
        with here:
            here.simulate("--framing", "bare")
            self.same(parsed(here.frames()), list(payloads(here.file("a.pcap"))), scanner, 0,
                      lambda head: range(scanner["geometry"]["bdm_count"]))
            done = here.run_program("petctl", "frames", here.file("a.pcap"), "-c", here.file("petacqd.json"), "--source", "1")
            self.assertEqual(done.returncode, 64)
            self.assertIn("expected the address of a board, since bare framing has no ids", done.stderr)

    def test_a_capture_of_a_layout(self):
        here, _ = site(layout="boards.layout.json")
        with here:
            here.write("boards.layout.json", COUNTED)
            hits = [{"bdm": i % 6, "du": i % 6, "x": i, "y": 63 - i, "energy": 300 + i, "bad": i == 5, "half_degrees": 2 * i,
                     "ticks": 256 * 1000 * i} for i in range(20)]
            sent = [counted_datagram(0, 8, 0, hits), b"\0\0" + counted_datagram(0, 9, 0, hits)[2:], counted_datagram(0, 9, 1, [])]
            write_pcap(here.file("a.pcap"), [(10**8 * i, payload) for i, payload in enumerate(sent)], 1)
            text = here.frames()
            shown = parsed(text)
            self.assertEqual([len(frames) for _, frames in shown], [20, 0, 0])
            for hit, frame in zip(hits, shown[0][1]):
                if hit["bad"]:
                    self.assertEqual(frame["why"], "its markers or its address do not fit the layout")
                else:
                    translated = own_frame({**hit, "ticks": hit["ticks"] + PERIOD * COUNT_TICKS})
                    self.assertEqual((frame["bytes"], frame["why"]), (translated, None))
            self.assertIn("  as sent: " + sent[0][:144].hex(" ") + " ...\n", text)
            self.assertEqual(shown[1][0][9], ": malformed: the markers of its header do not fit the layout")
            self.assertIn("end of stream", shown[2][0][0])

    def test_what_arrives(self):
        here, scanner = site()
        here.configuration["receive"]["sockets"][0]["port"] = 0
        with here:
            here.write("petacqd.json", here.configuration)

            def send(port, _):
                def live(*options):
                    return here.run_program("petctl", "--socket", here.file("control.sock"), "frames", *options)
                silent = live("--seconds", "0.3")
                self.assertEqual((silent.returncode, silent.stdout), (1, ""), silent.stderr)
                self.assertIn("nothing arrived in 0.3 s: petctl doctor says where to look", silent.stderr)
                boards = subprocess.Popen(  # pylint: disable=consider-using-with
                    [os.path.join(BIN, "petsim"), "--crystals", "surface", "--scanner", here.file("scanner.json"), "--calibration", here.file("c.h5"),
                     "--duration-s", "600", "--rate", "1e5", "--to", f"127.0.0.1:{port}", "--quiet"])
                try:
                    done = live("--seconds", "60", "--count", "30")
                    self.assertEqual(done.returncode, 0, done.stderr)
                    shown = parsed(done.stdout)
                    self.assertTrue(sum(len(frames) for _, frames in shown) == 30 or len(shown) == 30)
                    modules = {source["id"]: source["bdms"] for source in scanner["sources"]}
                    for head, frames in shown:
                        for frame in frames:
                            self.assertTrue(fields_of(frame["bytes"], scanner, modules[int(head[4])])["valid"])
                    nobody = live("--seconds", "2", "--source", "77")
                    self.assertEqual(nobody.returncode, 1)
                    self.assertIn("datagrams arrived, but none of source 77", nobody.stderr)
                    # What a capture holds can also be read as the daemon would.
                    write_pcap(here.file("a.pcap"), [(0, struct.pack(">4sBBHQ", b"PETF", 1, 0, 3, 7))], 1)
                    other_port = live(here.file("a.pcap"))
                    self.assertEqual(other_port.returncode, 1)
                    self.assertIn("no datagram for a port of receive.sockets: 1 for other ports", other_port.stderr)
                finally:
                    boards.terminate()
                    boards.wait()
            here.live("r", send)

    def test_what_is_no_capture(self):
        here, _ = site()
        with here:
            for file, why in (("scanner.json", "not a pcap file"), ("none.pcap", "none.pcap")):
                done = here.run_program("petctl", "frames", here.file(file), "--config", here.file("petacqd.json"))
                self.assertEqual(done.returncode, 74)
                self.assertIn(why, done.stderr)
            done = here.run_program("petctl", "frames", "--config", here.file("petacqd.json"))
            self.assertEqual(done.returncode, 64)


class Dissector(unittest.TestCase):
    NAMES = ["source", "sequence", "flags", "head", "du", "bdm", "time", "x", "y", "energy", "degrees", "value", "tail"]

    def test_wireshark_shows_the_same(self):
        here, _ = site()
        with here:
            here.simulate("--heartbeat-ms", "2")
            done = subprocess.run(
                ["tshark", "-X", "lua_script:" + os.path.join(SOURCE, "tools", "wireshark", "petacq.lua"),
                 "-r", here.file("a.pcap"), "-T", "fields", "-E", "occurrence=a", "-E", "separator=|",
                 *(w for name in self.NAMES for w in ("-e", "petacq." + name))],
                capture_output=True, text=True, check=True)
            lines = done.stdout.splitlines()
            shown = parsed(here.frames())
            self.assertEqual(len(lines), len(shown))
            tags = 0
            for line, (head, frames) in zip(lines, shown):
                found = {name: [int(word, 0) for word in column.split(",") if word]
                         for name, column in zip(self.NAMES, line.split("|"))}
                hits = [frame for frame in frames if frame["bytes"][0] >> 4 != 0xB]
                marked = [struct.unpack_from(">I", frame["bytes"], 10)[0] for frame in frames if frame["bytes"][0] >> 4 == 0xB]
                tags += len(marked)
                expected = {
                    "source": [int(head[4])], "sequence": [int(head[5])], "flags": [int(head[6], 16)],
                    "head": [frame["bytes"][0] >> 4 for frame in frames], "tail": [frame["bytes"][15] & 15 for frame in frames],
                    "du": [frame.get("du", frame.get("channel")) for frame in frames],
                    "bdm": [frame.get("bdm", frame.get("kind")) for frame in frames],
                    "time": [frame["time"] for frame in frames], "x": [hit["x"] for hit in hits], "y": [hit["y"] for hit in hits],
                    "energy": [hit["energy"] for hit in hits], "degrees": [math.floor(hit["degrees"]) for hit in hits],
                    "value": marked}
                self.assertEqual(found, expected)
            self.assertGreater(tags, 0)


if __name__ == "__main__":
    if sys.argv[3] == "Dissector" and shutil.which("tshark") is None:
        print("skipped: tshark is not installed")
        sys.exit(MISSING)
    unittest.main(argv=sys.argv[:1], defaultTest=sys.argv[3])
