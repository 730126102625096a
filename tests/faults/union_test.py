"""Two hosts hear one stream, and die: kills, power cuts and full disks of either, or of both, drawn from a seed.

Usage: union_test.py PROGRAMS SOURCE [--seeds FIRST-LAST]

Real programs: petsim makes the streams, petacqd records what each host hears of one, petlm unites the runs. What must
hold:
- the singles of the union are those that the files of the hosts hold, as petlm dump reads them;
- where each hit is in one of the files, singles and coincidences are those of a host that lost nothing, byte for byte;
- where each tag is, too, so are the tags, and the union begins when that host began;
- where a hit is missing within what the union covers, the union does not say that nothing is lost.
"""

import argparse
import collections
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time

FATES = ("whole", "killed", "power cut", "full disk")
HEADER = 4096  # of a list-mode file


def packets_of(capture):
    """The header of a pcap file and its packets, each with its own."""
    packets, at = [], 24
    while at < len(capture):
        (size,) = struct.unpack("<I", capture[at + 8:at + 12])
        packets.append(capture[at:at + 16 + size])
        at += 16 + size
    return capture[:24], packets


def payload_of(path):
    """The records of the blocks of a file."""
    if not os.path.exists(path):
        return b""
    with open(path, "rb") as file:
        data = file.read()
    (at,) = struct.unpack("<I", data[12:16])
    payload = []
    while data[at:at + 8] == b"PLMBLOCK":
        count, size = struct.unpack("<II", data[at + 16:at + 24])
        payload.append(data[at + 64:at + 64 + count * size])
        at += 64 + count * size
    return b"".join(payload)


class Campaign:
    STREAMS = 4

    def __init__(self, programs, source, work):
        self.programs, self.work = os.path.abspath(programs), work
        self.library = os.path.join(os.path.dirname(self.programs), "lib", "libfaultydisk.so")
        self.scanner = os.path.join(os.path.abspath(source), "config", "examples", "small.scanner.json")
        self.calibration = os.path.join(work, "small.h5")
        self.run("petcal", "make", "--scanner", self.scanner, "--output", self.calibration)
        self.streams = {}

    def program(self, name):
        return os.path.join(self.programs, name)

    def run(self, name, *arguments, good=(0,)):
        done = subprocess.run([self.program(name), *arguments], capture_output=True, text=True, check=False)
        if done.returncode not in good:
            raise AssertionError(f"{name} {' '.join(arguments)}: status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def stream(self, number):
        if number not in self.streams:
            path = os.path.join(self.work, f"{number}.pcap")
            self.run("petsim", "--scanner", self.scanner, "--calibration", self.calibration, "--quiet", "--sources", "4",
                     "--rate", "40000", "--duration-s", "0.8", "--flush-us", "3000", "--tag-clock", "1:0.002",
                     "--seed", str(100 + number), "--write", path)
            with open(path, "rb") as file:
                self.streams[number] = packets_of(file.read())
        return self.streams[number]

    def configuration(self, directory, data):
        path = os.path.join(directory, os.path.basename(data) + ".json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"scanner": self.scanner, "calibration": self.calibration, "data_dir": data,
                       "control": {"socket": os.path.join(directory, "socket")},
                       "receive": {"sockets": [{"address": "127.0.0.1", "port": 0}]},
                       "coincidence": {"window_ticks": 320, "delay_ticks": 6400},
                       "energy": {"lower_keV": 400, "upper_keV": 650}, "sources": {"ids": [0, 1, 2, 3]},
                       "pipeline": {"threads": 1, "backend": "cpu"},
                       "listmode": {"write_singles": True, "sync_interval_ms": 5, "block_bytes": 4096}}, file)
        return path

    def record(self, directory, name, packets, fate="whole", chance=None):
        """The directory of the run of a host to which that happens."""
        data = os.path.join(directory, name)
        os.makedirs(data)
        capture = os.path.join(directory, name + ".pcap")
        with open(capture, "wb") as file:
            file.write(packets)
        run = os.path.join(data, "r")
        environment = dict(os.environ)
        if fate != "whole":
            faults = "write:slow=1"  # time to be killed in
            if fate == "full disk":
                faults = f"write:ENOSPC:after={chance.randrange(HEADER, 600_000)}"
            environment |= {"LD_PRELOAD": self.library, "FAULTYDISK_PATH": run, "FAULTYDISK_FAULTS": faults}
        process = subprocess.Popen([self.program("petacqd"), "--config", self.configuration(directory, data), "--replay",
                                    capture, "--run", "r"], env=environment, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        if fate in ("killed", "power cut"):
            until = chance.randrange(0, 500_000)
            singles = os.path.join(run, "singles.plm")
            while process.poll() is None:
                if os.path.exists(os.path.join(run, "run.json")) and os.path.exists(singles) and \
                        os.path.getsize(singles) >= until:
                    break
                time.sleep(0.001)
            process.kill()
        process.wait()
        if fate == "power cut":
            self.cut_power(run, chance)
        return run

    def cut_power(self, run, chance):
        """What was not synced may be gone, or be zeros."""
        for name in sorted(os.listdir(run)):
            path = os.path.join(run, name)
            size = os.path.getsize(path)
            if not name.endswith(".plm") or size <= HEADER or chance.random() < 0.3:
                continue
            kept = max(HEADER, size - chance.randrange(1, 40_000))
            with open(path, "r+b") as file:
                file.truncate(kept)
                if chance.random() < 0.5:
                    file.truncate(size)  # zeros

    def hits(self, run, name="--singles"):
        """Every record that the files of a run hold."""
        done = subprocess.run([self.program("petlm"), "dump", name, run], capture_output=True, text=True, check=False)
        return collections.Counter(line for line in done.stdout.splitlines()[1:] if line)

    def play(self, seed, directory):
        chance = random.Random(seed)
        header, packets = self.stream(seed % self.STREAMS)
        loss = [chance.choice((0, 0, 0.02, 0.3)) for _ in range(2)]
        by_both = chance.choice((0, 0, 0, 0.02))
        heard = []
        for number in range(len(packets)):
            got = [chance.random() >= loss[0], chance.random() >= loss[1]]
            if not any(got):
                got[chance.randrange(2)] = True
            # No number tells of those before the first or after the last of a source.
            if chance.random() < by_both and 40 < number < len(packets) - 40:
                got = [False, False]
            heard.append(got)
        fates = [chance.choice(FATES[1:]), "whole" if chance.random() < 0.7 else chance.choice(FATES[1:])]
        chance.shuffle(fates)
        self.story = f"losses {loss}, by both {by_both}, {fates[0]} and {fates[1]}"
        runs = [self.record(directory, "ab"[host],
                            header + b"".join(p for p, got in zip(packets, heard) if got[host]), fates[host], chance)
                for host in range(2)]
        lossless = self.record(directory, "one", header + b"".join(packets))
        united = os.path.join(directory, "united")
        found = [self.hits(run) if os.path.isdir(run) else collections.Counter() for run in runs]
        if not all(os.path.exists(os.path.join(run, "run.json")) for run in runs) or not any(found):
            return "nothing to unite"
        self.run("petlm", "union", *runs, "--output", united, "--backend", "cpu")
        with open(os.path.join(united, "run.json"), encoding="utf-8") as file:
            document = json.load(file)
        all_hits = self.hits(united)
        assert all_hits == found[0] | found[1], "the union has other singles than its runs"
        self.run("petlm", "verify", united, good=(0,) if document["state"] == "complete" else (1,))
        of_stream = self.hits(lossless)
        missing = of_stream - all_hits
        if not missing:
            for name in ("singles.plm", "coincidences.plm"):
                same = payload_of(os.path.join(united, name)) == payload_of(os.path.join(lossless, name))
                assert same, f"{name} differs from that of a host that lost nothing"
            tags = [self.tags(run) for run in (*runs, united, lossless)]
            assert tags[2] == tags[0] | tags[1], "the union has other tags than its runs"
            if tags[2] == tags[3]:
                same = payload_of(os.path.join(united, "tags.plm")) == payload_of(os.path.join(lossless, "tags.plm"))
                assert same, "tags.plm differs from that of a host that lost nothing"
                assert document["start_ticks"] == self.start_of(lossless), "the union begins at another time"
            return "complete"
        start, stop = document["start_ticks"], document["stop_ticks"]
        inside = sum(count for hit, count in missing.items() if start <= int(hit.split(",")[0]) < stop)
        lost = document["united"]["lost_by_all"]["datagrams"]
        assert not inside or lost is None or lost > 0, f"{inside} hits are missing, but nothing is lost"
        return "incomplete, and says so" if inside else "ends early"

    def start_of(self, run):
        with open(os.path.join(run, "run.json"), encoding="utf-8") as file:
            return json.load(file)["start_ticks"]

    def tags(self, run):
        path = os.path.join(run, "tags.plm")
        if not os.path.exists(path):
            return collections.Counter()
        done = subprocess.run([self.program("petlm"), "dump", path], capture_output=True, text=True, check=False)
        return collections.Counter(line for line in done.stdout.splitlines()[1:] if line)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", help="directory of the programs")
    parser.add_argument("source", help="source tree")
    parser.add_argument("--seeds", default="0-9", help="FIRST-LAST; default: 0-9")
    arguments = parser.parse_args()
    first, last = (int(number) for number in arguments.seeds.split("-"))
    counts = collections.Counter()
    failed = []
    with tempfile.TemporaryDirectory(prefix="petacq-union-") as work:
        campaign = Campaign(arguments.programs, arguments.source, work)
        if not os.path.exists(campaign.library):
            print("libfaultydisk.so is not built")
            return 77
        for seed in range(first, last + 1):
            directory = os.path.join(work, str(seed))
            os.makedirs(directory)
            try:
                counts[campaign.play(seed, directory)] += 1
            except AssertionError as error:
                failed.append(seed)
                print(f"seed {seed} ({campaign.story}): {error}", flush=True)
            shutil.rmtree(directory)
    print(", ".join(f"{count} {what}" for what, count in counts.most_common()))
    if failed:
        print(f"failed: {failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
