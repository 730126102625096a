"""petlm-mpi over a network: daemons and ranks on hosts that are network namespaces with disks of their own.

namespaces_test.py BIN_DIR SOURCE_DIR [--long]. Exit status 77: no network namespaces, petlm-mpi or mpirun.

Boards send each datagram over UDP to their own host, and to the host `all`, which finds the coincidences while it
receives, and keeps the datagrams. mpirun starts ranks on the hosts. They talk over another network, and read the
singles of their own disk; where there are fewer ranks than hosts, a host reads the disks of those without a rank, too.
The SHA-256 of coincidences, triples, seconds and tags must be those of `all`: as found live, or in a replay for other settings.

Short: 3 hosts and 2 ranks, for each kind of times.
Long: 1, 2, 3 and 7 hosts, and 1 to 4 ranks. Each kind of times has each of the 36 settings of policy, window mode and
delayeds once, and each of the 16 numbers of hosts and ranks at least twice; test_covered() says which pairs occur. What
is found live is compared for each kind of times and each number of hosts.
Both: ranks that follow the hosts while they receive. The daemons differ in slices, threads, blocks, files and compression.
"""

import itertools
import json
import shutil
import socket
import subprocess
import sys
import unittest

import network
from streams import BOARDS, DELAY, GAMMAS, KINDS, MOST, START, Stream, TICKS_PER_S, WINDOW
from support import BIN, KINDS as RECORD_KINDS, SOURCE, records, run
from testbed import Client, wait_for  # streams has added its directory

LONG = "--long" in sys.argv
HOSTS = (1, 2, 3, 7) if LONG else (3,)
RANKS = (1, 2, 3, 4) if LONG else (2,)
FOLLOWED = (("sparse", 2, 3), ("dense", 7, 4), ("adversarial", 3, 3), ("adversarial", 7, 2)) if LONG else (
    ("adversarial", 3, 2),)  # kind of times, hosts, ranks
POLICIES = ("RemoveMultiples", "TakeAllGoods", "TakeWinnerOfGoods", "TakeIfOnlyOneGood", "TakeWinnerIfIsGood",
            "TakeWinnerIfAllAreGoods")
SETTINGS = list(itertools.product(POLICIES, ("single", "every", "single_opener"), (None, "shifted_group", "delayed_window")))
ALL = "all"
NAMES = [f"host{number}" for number in range(max(HOSTS))]
PORT = 9600
SHARD = 1500  # singles
# Datagrams that may wait in a socket: few enough for any limit of the kernel.
UNREAD = 50


def comparisons():
    """(hosts, ranks, kind of times, settings)."""
    places = list(itertools.product(HOSTS, RANKS))
    made = []
    for k, kind in enumerate(KINDS):
        for i, settings in list(enumerate(SETTINGS))[::1 if LONG else 31]:
            # Another start in each round and for each kind, so that no setting stays with some places.
            made.append((*places[(i + i // len(places) + 5 * k) % len(places)], kind, settings))
    return made


def coincidence(settings):
    policy, mode, delayeds = settings
    section = {"window_ticks": WINDOW, "max_multiplicity": MOST, "min_module_difference": 2,
               "multiples_policy": policy, "window_mode": mode}
    return section | ({"delay_ticks": DELAY, "delayeds": delayeds} if delayeds else {})


def options(settings):
    """The same for petlm-mpi."""
    policy, mode, delayeds = settings
    search = ["--delay-ticks", DELAY, "--delayeds", delayeds] if delayeds else ["--no-delay"]
    return ["--policy", policy, "--window-mode", mode, *search]


def all_records(run_directory):
    return [records(run_directory, kind) for kind in RECORD_KINDS]


def empty(directory):
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    return directory


class Daemon:
    """petacqd on a host, for some boards. `variant`: of what must not matter. `finds`: it finds coincidences."""

    def __init__(self, test, name, boards, variant, finds, settings, disorder):
        self.name = name
        self.disk = network.DISKS / name
        self.run = empty(self.disk / "data") / "r"
        self.address = (test.network.boards_address(name), PORT)
        self.sent = 0
        configuration = {
            "scanner": str(network.ROOT / "scanner.json"), "calibration": str(network.ROOT / "calibration.h5"),
            "data_dir": "data", "clock": "bench",
            "receive": {"sockets": [{"address": self.address[0], "port": PORT}], "lock_memory": False,
                        "batch_count": 16, "batch_bytes": 131072},
            "sources": {"ids": list(boards)},
            "watermark": {"max_disorder_us": disorder, "source_timeout_ms": 600000, "max_lag_ms": 600000},
            "coincidence": coincidence(settings), "gammas": GAMMAS,
            "pipeline": {"backend": "cpu", "threads": 1 + variant % 2, "slice_frames": 600 + 97 * variant},
            "listmode": {"write_singles": True, "write_coincidences": finds, "write_raw": finds,
                         "block_bytes": 4096 * (1 + variant % 3), "sync_interval_ms": 100,
                         "files": 1 + variant // 3 % 2, "compression": ("none", "zstd")[variant % 2]},
            "control": {"socket": "socket"}, "http": {"listen": ""},
            "health": {"min_disk_free_bytes": 0, "min_disk_time_s": 0}}
        (self.disk / "petacqd.json").write_text(json.dumps(configuration))
        log = self.disk / "log"
        with log.open("w") as output:
            self.process = test.network.start(name, "petacqd", "--config", "petacqd.json", launcher=test.launcher,
                                              stdout=output, stderr=output)
        test.addCleanup(self.end)
        wait_for(lambda: self.process.poll() is not None or " ready: " in log.read_text(), f"{name} is ready")
        test.assertIsNone(self.process.poll(), log.read_text())
        self.client = Client(str(self.disk / "socket"))
        test.addCleanup(self.client.close)

    def status(self):
        return self.client.call("status")

    def has_read(self, but=0):
        return self.status()["total"]["datagrams"]["received"] >= self.sent - but

    def run_json(self):
        return json.loads((self.run / "run.json").read_text())

    def end(self):
        """After its run, or in the middle of it."""
        self.process.kill()
        self.process.wait()


class Acquisition:
    """A stream to so many hosts, and to one that receives everything, with these settings."""

    def __init__(self, test, kind, count, settings):
        test.doCleanups()  # of the acquisition before
        self.test, self.hosts = test, NAMES[:count]
        self.stream = Stream(KINDS[kind], f"{kind}{count}")
        self.daemons = [Daemon(test, name, range(i, BOARDS, count), i + 1, False, settings, self.stream.disorder)
                        for i, name in enumerate(self.hosts)]
        self.all = Daemon(test, ALL, range(BOARDS), 0, True, settings, self.stream.disorder)
        self.runs = [network.SEEN / name / "data" / "r" for name in self.hosts]
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        test.addCleanup(self.socket.close)
        self.send(self.stream.before)
        started = subprocess.run(
            [BIN / "petctl", "--socket", network.LOCAL / "socket", "--hosts", ",".join([*self.hosts, ALL]), "start",
             "--run", "r", "--from-ticks", str(START), "--to-ticks", str(self.stream.end)],
            env=test.network.environment | {"PETACQ_SSH": str(test.launcher)}, capture_output=True, text=True)
        test.assertEqual(started.returncode, 0, started.stderr)

    def send(self, datagrams):
        """As fast as all read, so that no socket overflows. Afterwards they have read everything."""
        for board, payload in datagrams:
            for daemon in (self.daemons[board % len(self.daemons)], self.all):
                if daemon.sent % UNREAD == 0:
                    wait_for(lambda: daemon.has_read(UNREAD), "datagrams are read")
                self.socket.sendto(payload, daemon.address)
                daemon.sent += 1
        for daemon in (*self.daemons, self.all):
            wait_for(daemon.has_read, "datagrams are read")

    def finish(self):
        """The runs end at their last tick. Nothing is lost, late or refused. `live`: what was found."""
        ledgers = []
        for daemon in (*self.daemons, self.all):
            wait_for(lambda: daemon.status()["state"] == "idle", f"the run of {daemon.name} ends")
            document = daemon.run_json()
            ledger = document["ledger"]
            ledgers.append(ledger)
            self.test.assertEqual((document["state"], ledger["closed"]), ("complete", True), ledger)
            self.test.assertEqual((document["start_ticks"], document["stop_ticks"]), (START, self.stream.end))
            for kind, counters in (("datagrams", ("lost", "duplicate", "malformed", "unknown_source", "stray",
                                                  "dropped_kernel", "dropped_no_buffer")),
                                   ("frames", ("late", "time_jump", "bad_address", "bad_marker", "bad_time")),
                                   ("tags", ("late", "time_jump", "bad_address", "bad_marker", "bad_time"))):
                for counter in counters:
                    self.test.assertEqual(ledger[kind].get(counter, 0), 0, (daemon.name, ledger))
        found = ledgers[-1]
        self.singles = found["saved_singles"]["written"]
        self.test.assertEqual(sum(ledger["saved_singles"]["written"] for ledger in ledgers[:-1]), self.singles)
        self.test.assertEqual(sum(ledger["tags"]["written"] for ledger in ledgers[:-1]), found["tags"]["written"])
        self.test.assertGreater(found["gammas"]["triples"], 50)
        self.test.assertGreater(self.singles, 4000)
        self.test.assertGreater(found["tags"]["written"], 100)
        self.test.assertGreater(found["singles"]["prompts"], 100)
        self.live = all_records(self.all.run)

    def replayed(self, settings):
        """What the host that received everything finds with other settings."""
        disk = self.all.disk
        configuration = json.loads((disk / "petacqd.json").read_text())
        (disk / "replay.json").write_text(json.dumps(configuration | {"coincidence": coincidence(settings),
                                                                      "data_dir": "replays"}))
        replays = empty(disk / "replays")
        run("petacqd", "--config", disk / "replay.json", "--replay", self.all.run / "raw.pcap", "--run", "r")
        return all_records(replays / "r")


class Job:
    """mpirun petlm-mpi. The ranks are spread over the hosts, the first one on the first host."""

    def __init__(self, test, acquisition, ranks, *more):
        used = acquisition.hosts[:ranks]
        launcher = test.network.launcher({name: acquisition.hosts[i::len(used)] for i, name in enumerate(used)})
        slots = ",".join(f"{name}:{len(range(i, ranks, len(used)))}" for i, name in enumerate(used))
        self.test, self.acquisition = test, acquisition
        self.outputs = [network.DISKS / name / "out" for name in used]
        for output in self.outputs:
            shutil.rmtree(output, ignore_errors=True)
        self.sent_before = {switch: test.network.sent(switch) for switch in ("boards", "cluster")}
        self.log = network.ROOT / "log"
        with self.log.open("w") as log:
            self.process = test.network.start(
                used[0], "mpirun", "--mca", "plm_rsh_agent", launcher, "--mca", "oob_tcp_if_include", "cluster", "--mca",
                "btl_tcp_if_include", "cluster", "--mca", "mpi_yield_when_idle", "1", "--bind-to", "none", "--host",
                slots, "-n", ranks, "petlm-mpi", *acquisition.runs, "-o", network.LOCAL / "out", "--backend", "cpu",
                "--shard-singles", SHARD, *more, launcher=launcher, stdout=log, stderr=log)
        test.addCleanup(self.process.wait)
        test.addCleanup(self.process.terminate)

    def said(self):
        return self.log.read_text()

    def parts(self):
        return sum(len(list(output.glob("*.state"))) for output in self.outputs)

    def records(self):
        """Those of the parts of all hosts, copied into one directory."""
        self.test.assertEqual(self.process.wait(120), 0, self.said())
        whole = empty(network.ROOT / "whole")
        for output in self.outputs:
            for file in output.iterdir():
                self.test.assertFalse((whole / file.name).exists() and file.name != "job.json", file)
                shutil.copy(file, whole)
        self.test.assertGreater(len(list(whole.glob("*.state"))), 2)
        run("petlm", "verify", whole)
        return all_records(whole)

    def sent(self, switch):
        return self.test.network.sent(switch) - self.sent_before[switch]

    def check_network(self):
        """Most singles were searched by a rank that cannot read them; nothing goes over the network of the boards."""
        hosts = len(self.outputs)
        self.test.assertGreaterEqual(self.sent("cluster"), 16 * self.acquisition.singles * (hosts - 1) // hosts)
        self.test.assertLess(self.sent("boards"), 5000)  # the kernel's own


class Namespaces(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.network = network.Network([*NAMES, ALL], BIN.resolve())
        cls.launcher = cls.network.launcher()
        scanner = json.loads((SOURCE / "config/examples/small.scanner.json").read_text())
        # The last board also has the modules that are left.
        scanner |= {"tick_ps": 1e12 / TICKS_PER_S, "sources": [
            {"id": board, "bdms": [board] if board < BOARDS - 1 else list(range(board, 24))} for board in range(BOARDS)]}
        (network.ROOT / "scanner.json").write_text(json.dumps(scanner))
        run("petcal", "make", "--scanner", network.ROOT / "scanner.json", "--output", network.ROOT / "calibration.h5",
            "--bins", 4, "--energy-spread", 0)

    def compare(self, acquisition, expected, ranks, *more):
        job = Job(self, acquisition, ranks, *more)
        self.assertEqual(job.records(), expected, job.said())
        job.check_network()

    def test_settings(self):
        for number, (kind, count) in enumerate(itertools.product(KINDS, HOSTS)):
            live = SETTINGS[(7 * number + 1) % len(SETTINGS)]
            acquisition = Acquisition(self, kind, count, live)
            acquisition.send(acquisition.stream.datagrams)
            acquisition.finish()
            ranks = RANKS[number % len(RANKS)]
            with self.subTest("live", times=kind, hosts=count, ranks=ranks, settings=live):
                self.compare(acquisition, acquisition.live, ranks)
            for hosts, ranks, times, settings in comparisons():
                if (hosts, times) != (count, kind):
                    continue
                with self.subTest(times=kind, hosts=count, ranks=ranks, settings=settings):
                    self.compare(acquisition, acquisition.replayed(settings), ranks, *options(settings))

    def test_follow(self):
        """Parts are there while the daemons receive."""
        for kind, hosts, ranks in FOLLOWED:
            with self.subTest(times=kind, hosts=hosts, ranks=ranks):
                acquisition = Acquisition(self, kind, hosts, ("TakeWinnerOfGoods", "every", "shifted_group"))
                datagrams = acquisition.stream.datagrams
                job = Job(self, acquisition, ranks, "--follow")
                acquisition.send(datagrams[:len(datagrams) // 2])
                wait_for(lambda: job.parts() >= 2 or job.process.poll() is not None, "parts")
                self.assertIsNone(job.process.poll(), job.said())
                self.assertEqual(acquisition.daemons[0].status()["state"], "running")
                acquisition.send(datagrams[len(datagrams) // 2:])
                acquisition.finish()
                self.assertEqual(job.records(), acquisition.live, job.said())

    @unittest.skipUnless(LONG, "--long")
    def test_covered(self):
        """Each kind of times meets each number of hosts and ranks twice; policies, modes and delayeds meet each number
        of hosts and each number of ranks."""
        made = comparisons()
        for place in itertools.product(HOSTS, RANKS, KINDS):
            self.assertGreaterEqual(sum(one[:3] == place for one in made), 2, place)
        for which in range(3):
            values = {settings[which] for settings in SETTINGS}
            for place, numbers in enumerate((HOSTS, RANKS)):
                self.assertEqual({(one[place], one[3][which]) for one in made}, set(itertools.product(numbers, values)))


if __name__ == "__main__":
    why = "no MPI; tools/setup --cluster installs it"
    if shutil.which("mpirun") and (BIN / "petlm-mpi").exists():
        why = network.unusable()
    if why:
        print(f"skipped: {why}")
        sys.exit(77)
    network.enter()
    unittest.main(argv=sys.argv[:1], verbosity=2)
