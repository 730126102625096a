"""No false alarm: healthy boards, as captures and live, give no reason, no warning and a good verdict.

usage: healthy_test.py BIN_DIRECTORY SOURCE_TREE [--long]

Ten captures of both example scanners, with other rates, framings, boards, phantoms, payloads, tags and start times,
are replayed; boards of each example scanner send to a live daemon. --long takes twenty captures and an hour of detector time
each."""

import argparse
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
from eventually import eventually  # noqa: E402  (found by the line above)

PHANTOMS = {
    "point": ("--point", "0,0,0,1"),
    "point off the axis": ("--point", "8,5,3,1"),
    "line": ("--line", "-5,0,-8,6,2,8,1"),
    "cylinder": ("--cylinder", "0,0,0,12,25,1"),
    "warm and cold": ("--cylinder", "0,0,0,14,20,1", "--cold", "5,0,0,4,20", "--object", "0,0,0,15,25"),
}
BOARDS = {
    "as described": (),
    "bare": ("--framing", "bare"),
    "large datagrams": ("--payload", "8972"),
    "small datagrams": ("--payload", "144", "--flush-us", "200"),
}
EXTRAS = (
    (),
    ("--tag-trigger", "1", "--tag-clock", "2:0.1", "--cycle", "0.2,0.1"),
    ("--start-time-s", "86400"),
    ("--reorder", "0.01", "--skew-us", "400"),
    ("--intrinsic-hz", "0.5", "--dark-hz", "50", "--dead-time-ticks", "20000"),
)


class Site:
    """A directory with the configurations and calibrations of the example scanners."""

    def __init__(self, programs, tree, directory):
        self.programs, self.directory = programs, directory
        self.configurations = {}
        os.mkdir(os.path.join(directory, "data"))
        for name in ("small", "mouse"):
            examples = os.path.join(tree, "config", "examples")
            with open(os.path.join(examples, name + ".scanner.json"), encoding="utf-8") as file:
                scanner = json.load(file)
            self.write(f"{name}.scanner.json", scanner)
            self.write(f"{name}-bare.scanner.json", {k: v for k, v in scanner.items() if k != "sources"})
            self.program("petcal", "make", "--scanner", f"{name}.scanner.json", "--output", f"{name}.h5")
            with open(os.path.join(examples, name + ".json"), encoding="utf-8") as file:
                self.configurations[name] = json.load(file)

    def write(self, name, document):
        with open(os.path.join(self.directory, name), "w", encoding="utf-8") as file:
            json.dump(document, file)

    def read(self, *names):
        with open(os.path.join(self.directory, *names), encoding="utf-8") as file:
            return json.load(file)

    def start(self, name, *arguments, **options):
        return subprocess.Popen([os.path.join(self.programs, name), *map(str, arguments)], cwd=self.directory, text=True,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **options)

    def program(self, name, *arguments):
        return subprocess.run([os.path.join(self.programs, name), *map(str, arguments)], cwd=self.directory, text=True,
                              capture_output=True, check=True)

    def configure(self, scanner, bare, port, window_ns=None):
        """Writes the configuration of the example, for a test. `window_ns`: instead of that of the example."""
        configuration = json.loads(json.dumps(self.configurations[scanner]))
        configuration.pop("$schema", None)
        configuration["receive"].update({"sockets": [{"address": "127.0.0.1", "port": port}], "lock_memory": False,
                                         "batch_count": 64, "batch_bytes": 262144})
        if window_ns:
            configuration["coincidence"] = {"window_ns": window_ns, "delay_ns": 1000}
        if bare:
            configuration["scanner"] = f"{scanner}-bare.scanner.json"
            configuration["receive"]["framing"] = "bare"
            configuration["sources"] = {"accept_any": True}
        configuration.update({"http": {"listen": ""}, "health": {"min_disk_free_bytes": 0, "min_disk_time_s": 0,
                                                                 "max_latency_ms": 60000}})
        name = f"{scanner}{'-bare' if bare else ''}.json"
        self.write(name, configuration)
        return name


def warnings_of(log):
    return [line for line in log.splitlines() if " warning " in line or " error " in line]


def replayed(site, number, scanner, phantom, boards, extra, seconds):
    """What is wrong with the run of a healthy capture."""
    random.seed(number)
    rate = random.choice((20000, 60000, 150000))
    bare = "bare" in boards
    label = f"{scanner}, {phantom}, {boards}, {' '.join(extra)}, {rate} frames/s"
    window_ns = (None, 2, 20, 80)[(3 * number + number // 4) % 4]
    label += f", window {window_ns} ns" if window_ns else ""
    configuration = site.configure(scanner, bare, 0, window_ns)
    site.program("petsim", "--crystals", "surface", "--scanner", f"{scanner}{'-bare' if bare else ''}.scanner.json", "--calibration", f"{scanner}.h5",
                 "--rate", rate, "--duration-s", seconds, "--seed", number + 1, *PHANTOMS[phantom], *BOARDS[boards], *extra,
                 "--quiet", "--write", "healthy.pcap")
    done = subprocess.run([os.path.join(site.programs, "petacqd"), "--config", configuration, "--replay", "healthy.pcap",
                           "--run", f"r{number}"], cwd=site.directory, text=True, capture_output=True, check=False)
    os.remove(os.path.join(site.directory, "healthy.pcap"))
    wrong = [line for line in warnings_of(done.stderr) if "receive buffer" not in line]
    if not os.path.exists(os.path.join(site.directory, "data", f"r{number}", "run.json")):
        return [f"{label}: {done.stderr[-300:]}"]
    verdict = site.read("data", f"r{number}", "run.json").get("verdict", {})
    # Nobody can know the loss of bare framing: that is said, and is no alarm.
    if verdict.get("state") != "good" and not bare:
        wrong.append(f"verdict {json.dumps(verdict)}")
    if done.returncode != 0:
        wrong.append(f"exit status {done.returncode}: {done.stderr[-300:]}")
    return [f"{label}: {what}" for what in wrong]


def status_of(site, socket):
    done = subprocess.run([os.path.join(site.programs, "petctl"), "--socket", socket, "status", "--json"], cwd=site.directory,
                          text=True, capture_output=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def live(site, scanner, seconds):
    """The reasons of health that a live run has, from its start to its end."""
    configuration = site.configure(scanner, False, 0)
    daemon = site.start("petacqd", "--config", configuration)
    try:
        status = eventually(lambda: status_of(site, "petacqd.sock"))
        port = status["sockets"][0]["port"]
        boards = site.start("petsim", "--crystals", "surface", "--scanner", f"{scanner}.scanner.json", "--calibration", f"{scanner}.h5", "--rate", 30000,
                            *PHANTOMS["cylinder"], "--duration-s", seconds, "--quiet", "--to", f"127.0.0.1:{port}")
        eventually(lambda: all(s["datagrams"] > 0 for s in status_of(site, "petacqd.sock")["sources"]))
        site.program("petctl", "--socket", "petacqd.sock", "start", "--run", f"live-{scanner}")
        reasons = {}
        while boards.poll() is None:
            for reason in status_of(site, "petacqd.sock")["health"]["reasons"]:
                reasons[reason["code"]] = reason["message"]
            time.sleep(0.3)
        site.program("petctl", "--socket", "petacqd.sock", "stop")
    finally:
        daemon.terminate()
        daemon.communicate()
    # A loaded machine may keep the daemon from its work; that is not what is judged here.
    for code in ("latency_high", "disk_slow", "kernel_drops", "stage_stalled"):
        reasons.pop(code, None)
    return [f"live, {scanner}: {code}: {message}" for code, message in reasons.items()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs")
    parser.add_argument("tree")
    parser.add_argument("--long", action="store_true")
    options = parser.parse_args()
    wrong = []
    with tempfile.TemporaryDirectory() as directory:
        site = Site(os.path.abspath(options.programs), os.path.abspath(options.tree), directory)
        captures = 0
        for number, (phantom, boards) in enumerate(itertools.product(PHANTOMS, BOARDS)):
            row, column = divmod(number, len(BOARDS))
            if not options.long and row % 2 != column // 2:
                continue
            captures += 1
            scanner = ("small", "mouse")[(row + column) % 2]
            wrong += replayed(site, number, scanner, phantom, boards, EXTRAS[(row + column) % len(EXTRAS)],
                              180 if options.long else 1)
        for scanner in site.configurations:
            wrong += live(site, scanner, 3600 if options.long else 6)
    print("\n".join(wrong) or f"{captures} captures and {len(site.configurations)} scanners: no alarm")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
