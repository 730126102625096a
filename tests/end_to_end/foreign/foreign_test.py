"""Boards that send a declared foreign format: the list-mode is that of the same hits in petacqd's own frames.

    foreign_test.py DIRECTORY_OF_PROGRAMS SOURCE"""

import json
import os
import random
import socket
import struct
import sys
import unittest

from daemon import Site, eventually

BIN, SOURCE = sys.argv[1:3]
EXAMPLES = os.path.join(SOURCE, "config", "examples")
WORD = {"byte_order": "little"}

# Counters of 32 bits, of which each count is 256 ticks of 15.625 ps: they roll over every 17 s. A busy host may hold
# the sender for less than half of that.
PERIOD, COUNT_TICKS = 2**32, 256
COUNTED = {
    "name": "counted",
    "datagram": {**WORD, "header_bytes": 8, "markers": [{"offset": 0, "bytes": 2, "value": 0x5043}],
                 "source": {"offset": 2, "bytes": 1}, "sequence": {"offset": 4, "bytes": 4},
                 "end_of_stream": {"offset": 3, "bytes": 1, "low_bit": 7, "value": 1}},
    "frame": {**WORD, "bytes": 12, "markers": [{"offset": 0, "bytes": 1, "value": 0x5A}],
              "bdm": {"offset": 1, "bytes": 1}, "du": {"offset": 2, "bytes": 1, "bits": 4}, "x": {"offset": 3, "bytes": 1},
              "y": {"offset": 4, "bytes": 1}, "energy": {"offset": 6, "bytes": 2},
              "temperature": {"offset": 5, "bytes": 1, "signed": True, "degrees_per_count": 0.5}},
    "time": {"counter": [{"offset": 8, "bytes": 4}], "numerator": COUNT_TICKS, "roll_over": "count"},
}


def example(name):
    with open(os.path.join(EXAMPLES, name), encoding="utf-8") as file:
        return json.load(file)


def own_frame(hit, head=0xA):
    degrees = hit.get("half_degrees", 0)
    return struct.pack(">BBQBBHbB", head << 4 | hit["du"], hit["bdm"], hit["ticks"], hit["x"], hit["y"], hit["energy"],
                       degrees // 2, degrees % 2 * 0x80 | 0x5)


def own_datagram(source, sequence, flags, hits):
    return struct.pack(">4sBBHQ", b"PETF", 1, flags, source, sequence) + b"".join(
        own_frame(hit, 0xC if hit["bad"] else 0xA) for hit in hits)


def counted_datagram(source, sequence, flags, hits):
    return struct.pack("<HBBI", 0x5043, source, flags << 7, sequence) + b"".join(
        struct.pack("<BBBBBbHI", 0x77 if hit["bad"] else 0x5A, hit["bdm"], hit["du"], hit["x"], hit["y"],
                    hit["half_degrees"], hit["energy"], hit["ticks"] // COUNT_TICKS % PERIOD) for hit in hits)


def random_hits(count, scanner, first, last, step):
    """Pairs in modules that face each other, `step` ticks or a multiple of them apart."""
    choose = random.Random(5)
    size = scanner["geometry"]["position_size"]
    modules, units = scanner["geometry"]["bdm_count"], scanner["geometry"]["du_count"]
    hits = []
    for _ in range(count // 2):
        time, bdm = choose.randrange(first // step, last // step), choose.randrange(modules)
        for i in range(2):
            hits.append({"bdm": (bdm + i * modules // 2) % modules, "du": choose.randrange(units), "x": choose.randrange(size),
                         "y": choose.randrange(size), "energy": choose.randrange(200, 1000), "bad": choose.random() < 0.01,
                         "half_degrees": choose.randrange(-20, 100), "ticks": (time + choose.randrange(10)) * step})
    return sorted(hits, key=lambda hit: hit["ticks"])


def stream(datagram, hits, scanner, slice_ticks):
    """(time in ticks, payload) of the datagrams of all sources, in order of their times."""
    source_of = {bdm: source["id"] for source in scanner["sources"] for bdm in source["bdms"]}
    slices = {}
    for hit in hits:
        slices.setdefault((hit["ticks"] // slice_ticks, source_of[hit["bdm"]]), []).append(hit)
    sequence, sent = {source: 65000 for source in source_of.values()}, []
    for (number, source), part in sorted(slices.items()):
        sent.append(((number + 1) * slice_ticks, datagram(source, sequence[source], 0, part)))
        sequence[source] += 1
    sent.insert(len(sent) // 2, (sent[len(sent) // 2][0], sent[0][1][:-3]))  # cut short: malformed
    sent += [(sent[-1][0], datagram(source, sequence[source], 1, [])) for source in sequence]
    return sent


def sender(datagrams):
    def send(port, wait):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
            out.connect(("127.0.0.1", port))
            for i, (_, payload) in enumerate(datagrams):
                out.send(payload)
                if i % 40 == 39:  # no more than any socket buffer holds
                    wait(i + 1)
        wait(len(datagrams))
    return send


def write_pcap(file, datagrams, ns_per_tick):
    """As tcpdump would: microseconds, raw IPv4."""
    with open(file, "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 101))
        for ticks, payload in datagrams:
            us = int(ticks * ns_per_tick / 1000) + 1_700_000_000_000_000
            udp = struct.pack(">HHHH", 2000, 9601, 8 + len(payload), 0) + payload
            ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, bytes([10, 0, 0, 2]), bytes([10, 0, 0, 1]))
            out.write(struct.pack("<IIII", us // 1_000_000, us % 1_000_000, 20 + len(udp), 20 + len(udp)) + ip + udp)


def counts(run):
    ledger = run["ledger"]
    return {key: ledger[key] for key in ("frames", "singles", "pairs")}, {
        key: ledger["datagrams"][key] for key in ("received", "malformed", "lost", "duplicate", "accepted")
        if key in ledger["datagrams"]}


class Foreign(unittest.TestCase):
    def same(self, site, run, other_site, other):
        self.assertEqual(counts(site.run_json(run)), counts(other_site.run_json(other)))
        ours, theirs = site.listmode(run), other_site.listmode(other)
        self.assertGreater(len(ours[0]), 1000 * 32)
        self.assertTrue(ours == theirs, "the list-mode differs")

    def test_counted_roll_overs_and_captures(self):
        scanner = example("small.scanner.json")
        # Times in the second period and later, as counting starts.
        hits = random_hits(12000, scanner, PERIOD * COUNT_TICKS, PERIOD * COUNT_TICKS * 4, COUNT_TICKS)
        slice_ticks = int(0.32e12 / scanner["tick_ps"])
        foreign, own = (stream(kind, hits, scanner, slice_ticks) for kind in (counted_datagram, own_datagram))
        rules = {"coincidence": {"window_ticks": 5120, "delay_ticks": 102400}, "watermark": {"source_timeout_ms": 10000}}
        with Site(BIN, scanner, rules) as plain, Site(BIN, scanner, {**rules, "receive": {"layout": "layout.json"}}) as site:
            site.write("layout.json", COUNTED)
            plain.live("live", sender(own))
            ledger = site.live("live", sender(foreign))["ledger"]
            self.assertEqual((ledger["closed"], ledger["datagrams"]["malformed"], ledger["datagrams"]["lost"]), (True, 1, 0))
            self.assertGreater(ledger["frames"]["bad_marker"], 50)
            self.assertEqual(ledger["frames"]["late"], 0)
            self.same(site, "live", plain, "live")

            # The run's own capture holds petacqd's frames, with and without the layout.
            for replaying in (site, plain):
                replaying.replay("again", site.file("live", "raw.pcap"))
                self.same(replaying, "again", plain, "live")
            # A capture of the boards' datagrams needs it.
            write_pcap(site.file("boards.pcap"), foreign, scanner["tick_ps"] / 1000)
            site.replay("boards", site.file("boards.pcap"))
            self.same(site, "boards", plain, "live")
            plain.replay("boards", site.file("boards.pcap"))
            self.assertEqual(plain.run_json("boards")["ledger"]["datagrams"]["malformed"], len(foreign))

    def test_the_petsys_example(self):
        scanner = {
            "name": "petsys", "tick_ps": 5000,
            "geometry": {"channels": 16, "modules": {"y": 1, "z": 1}, "blocks": {"y": 2, "z": 2},
                         "crystals": {"y": 8, "z": 8}, "bdm_count": 16, "du_count": 4, "position_size": 8},
            "dimensions": {"ring_radius_mm": 140, "crystal_pitch_y_mm": 3.2, "crystal_pitch_z_mm": 3.2,
                           "crystal_length_mm": 15, "block_gap_y_mm": 0, "block_gap_z_mm": 0, "module_gap_z_mm": 0}}
        hits = random_hits(20000, scanner, 1 << 30, (1 << 30) + 20_000_000, 1)
        foreign, own = [], []
        for first in range(0, len(hits), 80):
            part, blocks = hits[first:first + 80], {}
            for hit in part:
                hit.update(half_degrees=0, bad=False)
                channel = hit["x"] | hit["y"] << 3 | (hit["bdm"] * 4 + hit["du"]) << 6
                charge = (hit["energy"] - 27) % 1024
                blocks.setdefault(hit["ticks"] // 1024, []).append(channel << 42 | hit["ticks"] % 1024 << 30 | charge)
            payload = b"\xa5" + b"".join(
                struct.pack(f"<QQ{len(events)}Q", number | (2 + len(events)) << 36, len(events), *events)
                for number, events in blocks.items())
            foreign.append((part[-1]["ticks"], payload))
            own.append((part[-1]["ticks"], b"".join(own_frame(hit) for hit in part)))
            if first == 8000:  # a reply to a command, between the data
                for datagrams in (foreign, own):
                    datagrams.append((part[-1]["ticks"], b"\x5a1234"))
        rules = {"sources": {"accept_any": True}, "coincidence": {"window_ticks": 10, "delay_ticks": 1000}}
        layout = os.path.join(EXAMPLES, "petsys-tofpet2.layout.json")
        with Site(BIN, scanner, {**rules, "receive": {"framing": "bare"}}) as plain, Site(
                BIN, scanner, {**rules, "receive": {"framing": "bare", "layout": layout}}) as site:
            for here, datagrams in ((plain, own), (site, foreign)):
                write_pcap(here.file("boards.pcap"), datagrams, 5)
                here.replay("r", here.file("boards.pcap"))
            self.same(site, "r", plain, "r")
            self.assertEqual(site.run_json("r")["ledger"]["frames"]["received"], len(hits))
            self.assertEqual(site.run_json("r")["ledger"]["datagrams"]["malformed"], 1)

    def test_data_that_petsys_boards_lose(self):
        scanner = {
            "name": "petsys", "tick_ps": 5000,
            "geometry": {"channels": 16, "modules": {"y": 1, "z": 1}, "blocks": {"y": 2, "z": 2},
                         "crystals": {"y": 8, "z": 8}, "bdm_count": 16, "du_count": 4, "position_size": 8},
            "dimensions": {"ring_radius_mm": 140, "crystal_pitch_y_mm": 3.2, "crystal_pitch_z_mm": 3.2,
                           "crystal_length_mm": 15, "block_gap_y_mm": 0, "block_gap_z_mm": 0, "module_gap_z_mm": 0}}
        datagrams = []
        for number in range(1000, 3000):
            if 2000 <= number < 2007:
                continue
            events = [] if number % 3 == 0 else [10 << 48 | 5 << 30 | 100, 40 << 48 | 5 << 30 | 100]
            datagrams.append((number * 1024, b"\xa5" + struct.pack(
                f"<QQ{len(events)}Q", number | 4 << 36, len(events) | (0x8000 if number % 100 == 0 else 0), *events)))
        rules = {"sources": {"accept_any": True}, "coincidence": {"window_ticks": 10},
                 "receive": {"framing": "bare", "layout": os.path.join(EXAMPLES, "petsys-tofpet2.layout.json")}}
        with Site(BIN, scanner, rules) as site:
            def send(port, wait):
                sender(datagrams[:400])(port, wait)
                eventually(lambda: any(reason["code"] == "board_lost_data" for reason in site.status()["health"]["reasons"]))
                sender(datagrams[400:])(port, lambda count: wait(400 + count))
            write_pcap(site.file("boards.pcap"), datagrams, 5)
            for run in (site.live("live", send), site.replay("replay", site.file("boards.pcap"))):
                ledger = run["ledger"]
                self.assertEqual((ledger["closed"], ledger["datagrams"]["malformed"]), (True, 0))
                self.assertEqual(ledger["datagrams"]["board_lost"], 19 + 7)  # frame 2000, marked, is not sent

    def test_a_healthy_timepix3(self):
        scanner = {
            "name": "timepix3", "tick_ps": 1562.5,
            "geometry": {"channels": 8, "modules": {"y": 1, "z": 1}, "blocks": {"y": 1, "z": 1},
                         "crystals": {"y": 8, "z": 8}, "bdm_count": 8, "du_count": 1, "position_size": 256},
            "dimensions": {"ring_radius_mm": 60, "crystal_pitch_y_mm": 1.7, "crystal_pitch_z_mm": 1.7, "crystal_length_mm": 1}}
        datagrams, hits, triggers = [], 0, 0
        for i in range(500):
            words = [0x4 << 60 | i]
            coarse = 40_000 * i  # of 25 ns
            if i % 5 != 0:
                words += [0xB << 60 | (i * 77 & 0xFFFF) << 44 | (coarse + k & 0x3FFF) << 30 | 200 << 20 | coarse + k >> 14
                          for k in range(20)]
                words.append(0x6F << 56 | i << 44 | coarse * 8 << 9)
                hits, triggers = hits + 20, triggers + 1
            datagrams.append((coarse * 16, struct.pack(f"<{len(words)}Q", *words)))
        rules = {"sources": {"accept_any": True}, "coincidence": {"window_ticks": 10},
                 "receive": {"framing": "bare", "layout": os.path.join(EXAMPLES, "timepix3-spidr.layout.json")}}
        with Site(BIN, scanner, rules) as site:
            write_pcap(site.file("boards.pcap"), datagrams, 1.5625)
            ledger = site.replay("r", site.file("boards.pcap"))["ledger"]
            self.assertTrue(ledger["closed"])
            self.assertEqual((ledger["frames"]["received"], ledger["tags"]["received"]), (hits, triggers))
            self.assertEqual([ledger["frames"][key] for key in ("bad_marker", "bad_address", "late", "time_jump")], [0] * 4)
            self.assertEqual([ledger["datagrams"][key] for key in ("malformed", "board_lost")], [0, 0])
            self.assertEqual(ledger["tags"]["found"], triggers)

    def test_a_layout_that_does_not_fit_is_refused(self):
        scanner = example("small.scanner.json")
        with Site(BIN, scanner, {"coincidence": {"window_ticks": 320}, "receive": {"layout": "layout.json"}}) as site:
            def refusal(layout):
                if layout is not None:
                    site.write("layout.json", layout)
                done = site.run_program("petacqd", "--check", "--config", site.file("petacqd.json"))
                self.assertEqual(done.returncode, 78, done.stderr)
                return done.stderr
            self.assertIn("layout.json", refusal(None))
            self.assertIn("/receive/framing: expected \"bare\", since layout \"PETsys",
                          refusal(example("petsys-tofpet2.layout.json")))
            self.assertIn("layout.json: /time/roll_over: expected a period of at least 20 ms",
                          refusal({**COUNTED, "time": {**COUNTED["time"], "counter": [{"offset": 8, "bytes": 2}]}}))
            self.assertIn("layout.json: /frame/bytes: missing", refusal({**COUNTED, "frame": {**WORD}}))
            site.write("layout.json", COUNTED)
            self.assertIn("are good", site.program("petacqd", "--check", "--config", site.file("petacqd.json")))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
