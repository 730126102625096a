"""Plays a story: the real daemon under libsimulation.so, started again after each of its ends."""

import dataclasses
import functools
import json
import os
import select
import shutil
import signal
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


# A drop is in the status so long after it.
SETTLE_NS = 300_000_000


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
    documents: dict = dataclasses.field(default_factory=dict)

    @functools.cached_property
    def statuses(self):
        """(ns, document) of each answer to the simulation's own requests."""
        return [(at, self.document(text)["result"]) for at, text in self.all("answer") if '"id":"status"' in text]

    def drops_at(self, ns, until_ns=None):
        """Whether the kernel dropped datagrams about this time, or from it to another one, as the statuses before and after tell."""
        return self.drops_until((until_ns or ns) + SETTLE_NS) != max([count for at, count in self._drops if at <= ns - SETTLE_NS], default=0)

    def drops_until(self, ns):
        """How many the kernel had dropped by the first status from this time on."""
        return next((count for at, count in self._drops if at >= ns), self._drops[-1][1] if self._drops else 0)

    @functools.cached_property
    def _drops(self):
        return [(at, status["total"]["datagrams"]["dropped_kernel"]) for at, status in self.statuses]

    def document(self, text):
        """The text of a request or an answer, parsed."""
        if text not in self.documents:
            self.documents[text] = json.loads(text)
        return self.documents[text]

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


class Lives:
    """The program under libsimulation.so, which plays lives of the daemon (preload/lives.cpp)."""

    # The daemon sees the same cores on every host; hwloc need not look at its devices.
    ENVIRONMENT = {"PATH": "/usr/bin:/bin", "TZ": "UTC", "HWLOC_SYNTHETIC": "core:4 pu:1", "HWLOC_PLUGINS_PATH": "/nonexistent",
                   "LD_BIND_NOW": "1"}

    def __init__(self, program, library):
        # Without randomised addresses: they decide where hash tables put things.
        self.process = subprocess.Popen(["setarch", "-R", "env", f"LD_PRELOAD={library}", program], env=self.ENVIRONMENT,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def _number(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.process.args[-1]} does not play lives: exit status {self.process.wait()}")
        return int(line)

    def play(self, number, from_ns, directory, fault):
        """(exit status as of subprocess, why it stands still)"""
        self.process.stdin.write(f"{number} {from_ns} {directory} {fault}\n".encode())
        pid, before = self._number(), -1.0
        while not select.select([self.process.stdout], [], [], IDLE_S)[0]:
            now = cpu_s(pid)
            if now == before or now > MOST_CPU_S:
                with open(f"/proc/{pid}/wchan", encoding="utf-8") as wait:  # "0": it computes
                    why = f"no end after {now:.0f} s of CPU, waits in the kernel in {wait.read()}."
                os.kill(pid, signal.SIGKILL)
                self._number()
                return STANDSTILL, why
            before = now
        return os.waitstatus_to_exitcode(self._number()), ""


class Bench:
    """The programs, and what all simulations share: scanner and calibration."""

    def __init__(self, binaries, source, work):
        self.source, self.work = source, work
        self.lives = Lives(os.path.join(binaries, "petacqd"), os.path.join(binaries, os.pardir, "lib", "libsimulation.so"))
        self.petlm = os.path.join(binaries, "petlm")
        self.scanner = os.path.join(work, "scanner.json")
        with open(self.scanner, "w", encoding="utf-8") as file:
            json.dump(SCANNER, file)
        self.calibrations = [os.path.join(work, f"calibration-{number}.h5") for number in range(CALIBRATIONS)]
        for seed, calibration in enumerate(self.calibrations, 1):
            subprocess.run([os.path.join(binaries, "petcal"), "make", "--scanner", self.scanner, "--output", calibration,
                            "--bins", "1", "--seed", str(seed), "--time-offset-ticks", str(20 * (seed - 1))],
                           check=True, capture_output=True)

    def close(self):
        self.lives.close()

    def configuration(self, directory, settings):
        gammas = GAMMAS[settings["gammas"]]
        return {
            "scanner": self.scanner, "calibration": os.path.join(directory, "calibration.h5"),
            "data_dir": os.path.join(directory, "data"),
            "control": {"socket": os.path.join(directory, "control.sock")}, "http": {"listen": ""},
            "receive": {"sockets": [{"address": "127.0.0.1", "port": 0}] * settings["sockets"], "batch_bytes": 131072,
                        "batch_count": 16 * max(2, settings["sockets"]),
                        "lock_memory": False, "flush_interval_ms": 50, "gro": False, "receive_buffer_bytes": 262144},
            "pipeline": {"backend": "cpu", "threads": 2, "slice_frames": 4000, "slice_interval_ms": 100},
            "listmode": {"block_bytes": 4096, "sync_interval_ms": SYNC_INTERVAL_MS, "queue_blocks": 16, "write_singles": True,
                         "write_raw": settings["capture"] != 0},
            "spectra": {"enabled": settings["spectra"] != 0},
            "coincidence": {"window_ticks": WINDOW_TICKS, "delay_ticks": DELAY_TICKS, "delayeds": DELAYEDS[settings["delayeds"]]},
            "energy": {"lower_keV": LOWER_KEV, "upper_keV": UPPER_KEV},
        } | ({"gammas": GAMMA | {"policy": gammas}} if gammas else {})

    def play(self, story, directory, fault=""):
        """The directory is emptied first. Its path must always have the same length: paths stand in files, and sizes of
        writes in the trace. `fault`: what the library plants (preload/lives.cpp)."""
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
        life = Life(from_ns)
        life.exit, life.why = self.lives.play(number, from_ns, directory, fault)
        with open(os.path.join(directory, "log"), encoding="utf-8", errors="replace") as file:
            life.log = file.read()
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
