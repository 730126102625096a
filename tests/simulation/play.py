"""Plays a story: the real daemon under libsimulation.so, started again after each of its ends."""

import dataclasses
import functools
import json
import os
import shutil
import subprocess

from story import CALIBRATIONS, DELAYEDS, GAMMAS

KILLED, POWER_CUT, STANDSTILL = 90, 91, 92
EPOCH_NS = 10**12  # the virtual clock when a story begins
RESTART_NS = 10**9  # from the end of a daemon to the start of the next
# A busy host may take any time for a story, but not without computing, and no story needs so much of that.
IDLE_S, MOST_CPU_S = 60, 300
MAX_LIVES = 20
WINDOW_TICKS, LOWER_KEV, UPPER_KEV = 400, 350, 650
DELAY_TICKS = 10000  # world.cpp knows it, too
GAMMA = {"lower_keV": 655, "upper_keV": 1200, "before_ticks": 150, "after_ticks": 300, "delay_ticks": 20000}
SYNC_INTERVAL_MS = 1000
# Small, so that what the daemon does for each module costs little. board.cpp knows these numbers, too.
SCANNER = {
    "name": "simulated", "tick_ps": 15.625,
    "geometry": {"channels": 4, "modules": {"y": 1, "z": 1}, "blocks": {"y": 1, "z": 2}, "crystals": {"y": 4, "z": 4},
                 "bdm_count": 4, "du_count": 2, "position_size": 16},
    "dimensions": {"ring_radius_mm": 20, "crystal_pitch_y_mm": 1.6, "crystal_pitch_z_mm": 1.7, "crystal_length_mm": 12,
                   "block_gap_y_mm": 0.4, "block_gap_z_mm": 0.5, "module_gap_z_mm": 1},
    "sources": [{"id": board, "bdms": [board]} for board in range(4)],
}


@dataclasses.dataclass
class Life:
    """One process of the daemon. Times are ns of the story."""

    begin_ns: int
    exit: int = 0
    end_ns: int = 0
    trace: str = ""
    points: int = 0
    memory_kb: int = 0
    events: list = dataclasses.field(default_factory=list)  # (ns, what, text)
    log: str = ""
    why: str = ""  # of a standstill

    @functools.cached_property
    def statuses(self):
        """(ns, document) of each answer to the simulation's own requests."""
        return [(at, json.loads(text)["result"]) for at, text in self.all("answer") if '"id":"status"' in text]

    def all(self, what):
        return [(at, text) for at, kind, text in self.events if kind == what]


@dataclasses.dataclass
class Outcome:
    directory: str
    lives: list

    @property
    def trace(self):
        return " ".join(f"{life.exit}:{life.trace}:{life.points}" for life in self.lives)


def cpu_s(pid):
    """What its threads have computed."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def log_until_end(daemon):
    """Raises subprocess.TimeoutExpired if it does not go on, or never ends."""
    before = -1.0
    while True:
        try:
            return daemon.communicate(timeout=IDLE_S)[1]
        except subprocess.TimeoutExpired:
            now = cpu_s(daemon.pid)
            if now == before or now > MOST_CPU_S:
                raise
            before = now


def waits_of_threads(process):
    """In which function of the kernel each thread waits; "0": it computes."""
    waits = []
    for thread in sorted(os.listdir(f"/proc/{process}/task"), key=int):
        with open(f"/proc/{process}/task/{thread}/comm", encoding="utf-8") as name, \
             open(f"/proc/{process}/task/{thread}/wchan", encoding="utf-8") as wait:
            waits.append(f"{name.read().strip()} {wait.read()}")
    return ", ".join(waits)


class Bench:
    """The programs, and what all simulations share: scanner and calibration."""

    def __init__(self, binaries, source, work):
        self.petacqd, self.petlm, self.work = os.path.join(binaries, "petacqd"), os.path.join(binaries, "petlm"), work
        self.library = os.path.join(binaries, os.pardir, "lib", "libsimulation.so")
        self.source = source
        self.scanner = os.path.join(work, "scanner.json")
        with open(self.scanner, "w", encoding="utf-8") as file:
            json.dump(SCANNER, file)
        self.calibrations = [os.path.join(work, f"calibration-{number}.h5") for number in range(CALIBRATIONS)]
        for seed, calibration in enumerate(self.calibrations, 1):
            subprocess.run([os.path.join(binaries, "petcal"), "make", "--scanner", self.scanner, "--output", calibration,
                            "--bins", "1", "--seed", str(seed), "--time-offset-ticks", str(20 * (seed - 1))],
                           check=True, capture_output=True)

    def configuration(self, directory, settings):
        gammas = GAMMAS[settings["gammas"]]
        return {
            "scanner": self.scanner, "calibration": os.path.join(directory, "calibration.h5"),
            "data_dir": os.path.join(directory, "data"),
            "control": {"socket": os.path.join(directory, "control.sock")}, "http": {"listen": ""},
            "receive": {"sockets": [{"address": "127.0.0.1", "port": 0}] * settings["sockets"], "batch_bytes": 131072,
                        "batch_count": 16 * max(2, settings["sockets"]),
                        "lock_memory": False, "flush_interval_ms": 50, "gro": False, "receive_buffer_bytes": 262144},
            "pipeline": {"backend": "cpu", "threads": 2, "slice_frames": 1000, "slice_interval_ms": 100},
            "listmode": {"block_bytes": 4096, "sync_interval_ms": SYNC_INTERVAL_MS, "queue_blocks": 16, "write_singles": True,
                         "write_raw": settings["capture"] != 0},
            "spectra": {"enabled": settings["spectra"] != 0},
            "coincidence": {"window_ticks": WINDOW_TICKS, "delay_ticks": DELAY_TICKS, "delayeds": DELAYEDS[settings["delayeds"]]},
            "energy": {"lower_keV": LOWER_KEV, "upper_keV": UPPER_KEV},
        } | ({"gammas": GAMMA | {"policy": gammas}} if gammas else {})

    def play(self, story, directory, fault=""):
        """The directory is emptied first. `fault`: what the library plants (load.cpp). Its path must always have the same length: paths stand in files, and sizes of
        writes in the trace."""
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(os.path.join(directory, "data"))
        with open(os.path.join(directory, "story"), "w", encoding="ascii") as file:
            file.write(str(story))
        with open(os.path.join(directory, "petacqd.json"), "w", encoding="utf-8") as file:
            json.dump(self.configuration(directory, story.settings), file)
        os.symlink("../" + os.path.basename(self.calibrations[0]), os.path.join(directory, "calibration.h5"))
        lives, from_ns = [], 0
        length_ns = story.settings["length_ms"] * 10**6
        while not lives or from_ns < length_ns - 2 * RESTART_NS and len(lives) < MAX_LIVES:
            life = self._live(directory, len(lives), from_ns, fault)
            lives.append(life)
            if life.exit == STANDSTILL:
                break
            from_ns = max(life.end_ns, from_ns) + RESTART_NS
        return Outcome(directory, lives)

    def _live(self, directory, number, from_ns, fault):
        environment = {"PATH": os.environ["PATH"], "LD_PRELOAD": self.library, "PETACQ_SIMULATION": directory,
                       "PETACQ_SIMULATION_LIFE": str(number), "PETACQ_SIMULATION_FROM_NS": str(from_ns), "TZ": "UTC",
                       "PETACQ_SIMULATION_FAULT": fault}
        life = Life(from_ns)
        # Without randomised addresses: they decide where hash tables put things.
        with subprocess.Popen(["setarch", "-R", self.petacqd, "--config", os.path.join(directory, "petacqd.json")], env=environment,
                              cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as daemon:
            try:
                log = log_until_end(daemon)
                life.exit = daemon.returncode
            except subprocess.TimeoutExpired:
                life.exit, life.why = STANDSTILL, f"no end after {cpu_s(daemon.pid):.0f} s of CPU: {waits_of_threads(daemon.pid)}."
                daemon.kill()
                log = daemon.communicate()[1]
        life.log = log.decode("utf-8", "replace")
        self._read_events(life, directory, number)
        return life

    @staticmethod
    def _read_events(life, directory, number):
        with open(os.path.join(directory, "events"), encoding="utf-8") as file:
            for line in file:
                which, at, what, text = line.rstrip("\n").split(" ", 3)
                if int(which) != number:
                    continue
                life.end_ns = int(at) - EPOCH_NS
                life.events.append((life.end_ns, what, text))
                if what == "end":
                    life.trace, points, memory = text.split()
                    life.points, life.memory_kb = int(points), int(memory)
