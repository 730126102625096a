"""A live run with random faults: tools/soak. Prints what happens, and a verdict with figures at the end."""

import argparse
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from datagrams import Sender, datagram, frame
from testbed import Daemon, Failed, Programs, Site, expect

CYCLE_S = 20  # of a simulated stream
# Chances are small enough that a run keeps most of its pairs, and large enough that every cycle has some.
FAULTS = (["--loss", "0.002"], ["--duplicate", "0.002"], ["--reorder", "0.005"], ["--corrupt", "marker:0.002"],
          ["--corrupt", "time:0.001"], ["--corrupt", "magic:0.001"], ["--clock-jump", "3@5:640000000000:40"],
          ["--silent", "5@4-9"], [])


class Watch:
    """Once a second: memory, descriptors, latency, and the time of an answer."""

    def __init__(self, daemon):
        self.daemon, self.client = daemon, daemon.new_client()
        self.memory, self.latency, self.answers = [], [], []
        self.descriptors = []  # between streams, without subscribers
        self.reasons = set()

    def look(self):
        begin = time.monotonic()
        status = self.client.call("status")
        self.answers.append(time.monotonic() - begin)
        process = f"/proc/{self.daemon.process.pid}"
        with open(process + "/status", encoding="utf-8") as file:
            self.memory.append(next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmRSS")))
        if status["latency"]["p50_ms"] is not None:
            self.latency.append((status["latency"]["p50_ms"], status["latency"]["p99_ms"]))
        self.reasons |= {reason["code"] for reason in status["health"]["reasons"]}

    def count_descriptors(self):
        self.descriptors.append(len(os.listdir(f"/proc/{self.daemon.process.pid}/fd")))

    def growth(self, values):
        """(from, to): the medians of the second and the last quarter."""
        quarter = max(1, len(values) // 4)
        return statistics.median(values[quarter:2 * quarter] or values), statistics.median(values[-quarter:])


class Soak:
    def __init__(self, programs, options):
        self.programs, self.options = programs, options
        self.random = random.Random(options.seed)
        capture, sent = programs.stream(seconds=0.2)
        bdms = {}
        for one in sent:
            bdms.setdefault(one.source, set()).update(one.payload[17::16])
        sources = [{"id": source, "bdms": sorted(modules)} for source, modules in sorted(bdms.items())]
        port = {"address": "127.0.0.1", "port": 0}
        self.site = Site(programs, {"receive": {"sockets": [port, port]}, "listmode": {"split_bytes": 1 << 26}}, sources)
        self.daemon = Daemon(self.site)
        self.watch = Watch(self.daemon)
        self.unknown_sender = Sender(self.daemon.ports)
        self.wrong = []
        self.runs = self.prompts = self.pauses = self.cycles = self.frames = self.dropped = self.number = 0
        self.over = False

    def note(self, what):
        self.wrong.append(what)
        print("WRONG:", what, flush=True)

    def unknown_senders(self):
        """Garbage and made-up sources, all the time."""
        generator = random.Random(self.options.seed + 1)
        while not self.over:
            source = generator.randrange(100, 65536)
            ticks = generator.choice([0, 2**64 - 1, generator.randrange(2**64)])
            self.unknown_sender.send(generator.choice([generator.randbytes(generator.randrange(2000)), datagram(source, 0),
                                                 datagram(source, generator.randrange(2**64), [frame(ticks)] * 2)]),
                               to=generator.randrange(2))
            time.sleep(0.02)

    def pause(self):
        """The process stands still for up to a second."""
        self.daemon.signal(signal.SIGSTOP)
        time.sleep(self.random.uniform(0.05, 1))
        self.daemon.signal(signal.SIGCONT)
        self.pauses += 1

    def subscribers(self):
        clients = [self.daemon.new_client() for _ in range(self.random.randrange(1, 20))]
        for client in clients:
            client.ask("subscribe", interval_s=0.1)
        return clients

    def finish_run(self):
        """Stops the run in progress, and judges it."""
        answer = self.daemon.client.call("stop")
        self.runs += 1
        self.prompts += answer["prompts"]
        document = self.site.run_json(answer["run"])
        if document["state"] != "complete" or not document["ledger"]["closed"]:
            self.note(f"run {answer['run']} is {document['state']}, open: {document['ledger']['open']}")
        done = self.programs.run("petlm", "verify", os.path.join(self.site.data, answer["run"]), check=False, timeout=600)
        if done.returncode != 0:
            self.note("petlm verify: " + done.stdout)
        shutil.rmtree(os.path.join(self.site.data, answer["run"]))

    def cycle(self):
        """One simulated stream with faults; what the daemon counts is what petsim did."""
        before = self.daemon.status()["total"]
        self.cycles += 1
        faults = sum(self.random.sample(FAULTS, 2), [])
        summary = self.site.path("petsim.json")
        command = [self.programs.path("petsim"), "--crystals", "surface", "--scanner", os.path.join(self.programs.work, "bare.scanner.json"),
                   "--calibration", self.programs.calibration, "--cylinder", "0,0,0,10,20,1", "--rate",
                   str(self.options.rate), "--duration-s", str(CYCLE_S), "--sources", "8", "--seed",
                   str(self.random.randrange(2**31)), "--start-time-s", str(100 + self.cycles * (CYCLE_S + 5)), "--threads",
                   "1", "--summary", summary, "--quiet", *faults]
        for port in self.daemon.ports:
            command += ["--to", f"127.0.0.1:{port}"]
        clients = self.subscribers()
        simulator = subprocess.Popen(command)
        self.daemon.client.call("start", run=f"run-{self.cycles}-0")
        next_run, next_pause = time.monotonic() + self.random.uniform(4, 12), time.monotonic() + self.random.uniform(2, 10)
        while simulator.poll() is None:
            time.sleep(1)
            self.watch.look()
            if time.monotonic() > next_pause:
                self.pause()
                next_pause = time.monotonic() + self.random.uniform(2, 15)
            if time.monotonic() > next_run:
                self.finish_run()
                self.number += 1
                self.daemon.client.call("start", run=f"run-{self.cycles}-{self.number}")
                next_run = time.monotonic() + self.random.uniform(4, 12)
        for client in clients:
            client.close()
        expect(simulator.returncode == 0, "petsim fails")
        time.sleep(1)
        self.finish_run()
        self.watch.count_descriptors()
        self.compare(before, self.daemon.status()["total"], summary, faults)

    def compare(self, before, after, summary, faults):
        with open(summary, encoding="utf-8") as file:
            expected = json.load(file)["total"]["expected"]

        def grown(part, name):
            return after[part][name] - before[part][name]

        self.frames += grown("frames", "received")
        lost_here = grown("datagrams", "dropped_kernel") + grown("datagrams", "dropped_no_buffer")
        self.dropped += lost_here
        figures = {"lost": grown("datagrams", "lost") - expected["datagrams_lost"],
                   "frames": grown("frames", "received") - expected["frames_received"]}
        if lost_here == 0 and any(figures.values()):
            self.note(f"cycle {self.cycles} {' '.join(faults)}: more than petsim did: {figures}")

    def verdict(self):
        memory, descriptors = self.watch.growth(self.watch.memory), self.watch.growth(self.watch.descriptors or [0])
        p50 = max((p50 for p50, _ in self.watch.latency), default=0)
        p99 = max((p99 for _, p99 in self.watch.latency), default=0)
        answers = sorted(self.watch.answers)
        slow = answers[int(len(answers) * 0.99)]
        if memory[1] > memory[0] * 1.05 + 8:
            self.note(f"memory grows from {memory[0]:.0f} to {memory[1]:.0f} MiB")
        if descriptors[1] > descriptors[0] + 2:
            self.note(f"descriptors grow from {descriptors[0]:.0f} to {descriptors[1]:.0f}")
        if p50 > 2000:
            self.note(f"the median latency reaches {p50:.0f} ms")
        if slow > 1.5:  # a pause of the process takes up to one second
            self.note(f"status is answered after {slow:.2f} s (99 of 100)")
        print(f"""soak: {self.cycles} streams, {self.runs} runs, {self.frames:,} frames, {self.prompts:,} prompts, \
{self.pauses} pauses, {self.unknown_sender.sent:,} datagrams of unknown senders
  memory       {memory[0]:.0f} MiB in the second quarter, {memory[1]:.0f} MiB in the last, {max(self.watch.memory):.0f} MiB at most
  descriptors  {descriptors[0]:.0f} in the second quarter, {descriptors[1]:.0f} in the last, without subscribers
  latency      median at most {p50:.0f} ms, p99 at most {p99:.0f} ms, pauses included
  answers      within {slow:.3f} s in 99 of 100 cases, {answers[-1]:.3f} s at most, pauses included
  dropped      {self.dropped} datagrams (no buffer, or by the kernel)
  health       {', '.join(sorted(self.watch.reasons)) or 'no reasons'}
soak: {'FAILED: ' + '; '.join(self.wrong) if self.wrong else 'passed'}""")
        return 1 if self.wrong else 0

    def run(self):
        threading.Thread(target=self.unknown_senders, daemon=True).start()
        end = time.monotonic() + self.options.hours * 3600
        while not self.over:
            try:
                self.cycle()
            except Failed as failed:
                self.note(str(failed))
                self.over = True
            print(f"{time.strftime('%H:%M:%S')} stream {self.cycles}: {self.watch.memory[-1]:.0f} MiB, "
                  f"{self.watch.descriptors[-1:]} descriptors", flush=True)
            self.over = self.over or time.monotonic() > end or self.daemon.process.poll() is not None
        if self.daemon.process.poll() is not None:
            self.note(f"the daemon ended by itself: {self.daemon.log()[-2000:]}")
        elif self.daemon.end() != 0:
            self.note(f"the daemon exits with {self.daemon.process.returncode}")
        return self.verdict()


def main():
    parser = argparse.ArgumentParser(prog="tools/soak")
    parser.add_argument("--hours", type=float, required=True)
    parser.add_argument("--rate", type=int, default=200000, help="frames a second")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--source", required=True)
    options = parser.parse_args()
    work = tempfile.mkdtemp(prefix="petacq-soak-")
    try:
        return Soak(Programs(options.bin, options.source, work), options).run()
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
