"""Makes the runs: their scanners, captures and configurations, replays and live daemons."""

import json
import os
import subprocess
import sys
import time

import boards

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
from control import Control  # noqa: E402  (found by the line above)
from eventually import eventually  # noqa: E402  (found by the line above)

START_S, LENGTH_S, FROM_S, TO_S, DURATION_S = 5, 0.4, 5.1, 5.3, 0.25
SMALL = "small.scanner.json"
# What the layout of PETsys can name: 16 modules of 4 units of 8 by 8 crystals; a tick is a clock.
PETSYS = {
    "name": "petsys", "tick_ps": 5000,
    "geometry": {"channels": 8, "modules": {"y": 1, "z": 2}, "blocks": {"y": 2, "z": 2}, "crystals": {"y": 8, "z": 8},
                 "bdm_count": 16, "du_count": 4, "position_size": 8},
    "dimensions": {"ring_radius_mm": 70, "crystal_pitch_y_mm": 3.2, "crystal_pitch_z_mm": 3.2, "crystal_length_mm": 15}}
MADE = {"own": ("--time-offset-ticks", 200), "petsys": ("--gain-keV-per-adc", 1, "--bins", 103)}


class ProgramFailed(Exception):
    pass


class Site:
    """A directory with scanners, calibrations, captures and runs."""

    def __init__(self, programs, tree, directory):
        self.programs, self.tree, self.directory = programs, tree, directory
        with open(os.path.join(tree, "config", "examples", SMALL), encoding="utf-8") as file:
            self.scanners = {"own": json.load(file), "petsys": PETSYS}
        for name, scanner in self.scanners.items():
            # Of bare boards nobody knows the addresses here: such a scanner has no list of who sends.
            self.write(f"{name}-sequenced.json", scanner)
            self.write(f"{name}-bare.json", {key: value for key, value in scanner.items() if key != "sources"})
            self.program("petcal", "make", "--scanner", f"{name}-bare.json", "--output", f"{name}.h5", *MADE[name])

    def file(self, *names):
        return os.path.join(self.directory, *names)

    def write(self, name, document):
        with open(self.file(name), "w", encoding="utf-8") as file:
            json.dump(document, file)

    def read(self, *names):
        with open(self.file(*names), encoding="utf-8") as file:
            return json.load(file)

    def run_program(self, name, *arguments):
        return subprocess.run([os.path.join(self.programs, name), *map(str, arguments)], cwd=self.directory, text=True,
                              capture_output=True, check=False)

    def program(self, name, *arguments, status=0):
        done = self.run_program(name, *arguments)
        if done.returncode != status:
            raise ProgramFailed(f"{name} {' '.join(map(str, arguments))}: status {done.returncode}, expected {status}: "
                                f"{done.stdout[-300:]}{done.stderr}")
        return done.stdout

    def petlm(self, *arguments, status=0):
        return self.program("petlm", *arguments, status=status)

    def coverage(self, run):
        return self.read(run, "run.json")["coverage"]

    def coverage_of(self, file):
        return json.loads(self.petlm("info", "--json", file))["coverage"]

    def coverage_of_files(self, run):
        """By kind, those of its parts."""
        kinds = {}
        for file in json.loads(self.petlm("info", "--json", run))["files"]:
            kinds.setdefault(file["kind"], []).append(file["coverage"])
        return kinds

    def scanner(self, run):
        return f"{run['format']}-{run['framing']}.json"

    def capture(self, run):
        """That of all boards, and one of each half of them."""
        name = f"{run['format']}-{run['framing']}-{run['tags']}"
        files = [f"{name}.pcap", f"{name}-a.pcap", f"{name}-b.pcap"]
        if not os.path.exists(self.file(files[0])):
            tags = ("--tag-trigger", 1, "--tag-gate", "2:0.5-1", "--tag-dead-time", "3:0.01") if run["tags"] == "all" else ()
            self.program("petsim", "--crystals", "surface", "--scanner", self.scanner(run), "--calibration", run["format"] + ".h5", "--quiet",
                         "--framing", run["framing"], "--sources", 4, "--cylinder", "0,0,0,10,20,0.5", "--rate", 50000,
                         "--cycle", "0.05,0.1", "--flush-us", 4000, "--start-time-s", START_S, "--duration-s", LENGTH_S,
                         "--threads", 1, *tags, "--write", "petsim.pcap")
            packets = boards.read(self.file("petsim.pcap"))
            os.remove(self.file("petsim.pcap"))
            if run["format"] == "petsys":
                packets = [(when, port, boards.as_petsys(datagram)) for when, port, datagram in packets]
            ports = sorted({port for _, port, _ in packets})
            for file, senders in zip(files, (ports, ports[:2], ports[2:])):
                boards.write(self.file(file), [packet for packet in packets if packet[1] in senders])
        return files

    def configure(self, run, data_dir, host=None):
        """The configuration of a run; `run` has its options, without the others for a plain one."""
        bare = run["framing"] == "bare"
        ids = {None: [0, 1, 2, 3], "a": [0, 1], "b": [2, 3]}[host]
        receive = {"framing": run["framing"], "lock_memory": False, "batch_count": 32, "batch_bytes": 262144,
                   "sockets": [{"address": "127.0.0.1", "port": 0}] * run.get("sockets", 1)}
        if run["format"] == "petsys":
            receive["layout"] = os.path.join(self.tree, "config", "examples", "petsys-tofpet2.layout.json")
        coincidence = {"window_ns": 1000, "window_mode": run["mode"], "multiples_policy": run["policy"],
                       "min_module_difference": 2, "max_ring_difference": 7}
        if run["delayeds"] != "none":
            coincidence.update(delay_ns=10000, delayeds=run["delayeds"])
        # The lower part of the spectrum, in windows of time in which a pair has none, one or several.
        gammas = {"lower_keV": 150, "upper_keV": 350, "before_ns": 20000, "after_ns": 50000, "policy": "all", "delay_ns": 200000}
        listmode = {"write_singles": run.get("singles", "yes") == "yes", "write_raw": run.get("raw") == "yes",
                    "write_coincidences": run.get("coincidences", "on") == "on", "files": run.get("files", 1),
                    "compression": run.get("compression", "none")}
        if "split" in run:  # several blocks, and several slices, of what is so short
            listmode.update(block_bytes=4096, split_bytes=32768 if run["split"] == "size" else 0,
                            split_s=0.05 if run["split"] == "time" else 0)
        os.makedirs(self.file(data_dir), exist_ok=True)
        name = data_dir + ".json"
        self.write(name, {
            "scanner": self.scanner(run), "calibration": run["format"] + ".h5", "data_dir": data_dir, "clock": "one",
            "receive": receive, "sources": {"accept_any": True} if bare else {"ids": ids},
            "watermark": {"source_timeout_ms": 30000}, "energy": {"lower_keV": 400, "upper_keV": 600},
            "coincidence": coincidence, "gammas": gammas if run["gammas"] == "on" else None, "listmode": listmode,
            "pipeline": {"backend": "cpu", "threads": 2, "slice_frames": 3000 if "split" in run else 262144},
            "spectra": {"enabled": run.get("spectra", "yes") == "yes"}, "control": {"socket": "control.sock"},
            "http": {"listen": ""}, "health": {"min_disk_free_bytes": 0, "min_disk_time_s": 0}})
        return name

    def replay(self, configuration, capture, run, *interval):
        self.program("petacqd", "--config", configuration, "--replay", capture, "--run", run, *interval)

    def live(self, run, configuration, name, *interval):
        """A run of a daemon that waits for its data. Returns the host's time before the first and after the last datagram,
        in ns since 1970."""
        with open(self.file("log"), "w", encoding="utf-8") as log:
            daemon = subprocess.Popen(  # pylint: disable=consider-using-with
                [os.path.join(self.programs, "petacqd"), "--config", configuration], cwd=self.directory, stderr=log)
        try:
            def ready():
                with open(self.file("log"), encoding="utf-8") as file:
                    text = file.read()
                if daemon.poll() is not None:
                    raise ProgramFailed(text)
                return " ready: " in text
            eventually(ready)
            with Daemon(self.file("control.sock")) as control:
                ports = [entry["port"] for entry in control.call("status")["sockets"]]
                self.program("petctl", "--socket", "control.sock", "start", "--run", name, *interval)
                before = time.time_ns()
                boards.send(boards.read(self.file(self.capture(run)[0])), ports,
                            lambda count: eventually(lambda: control.received() >= count))
                after = time.time_ns()
                if run["interval"] == "all":
                    self.program("petctl", "--socket", "control.sock", "stop")
                else:
                    eventually(lambda: control.call("status")["run"] is None)
        finally:
            daemon.terminate()
            daemon.wait()
        return before, after


class Daemon(Control):
    def received(self):
        return self.call("status")["total"]["datagrams"]["received"]
