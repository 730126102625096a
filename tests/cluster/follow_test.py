"""petlm-mpi --follow beside daemons that write: behind by seconds, whole after kills, the bytes of petlm resort.

follow_test.py BIN_DIR SOURCE_DIR [--long]. --long: ten moments for each role that is killed. Exit status 77: petlm-mpi
was not built, or there is no mpirun.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from support import BIN, KINDS, SOURCE, records

LONG = "--long" in sys.argv
sys.path.insert(0, str(SOURCE / "tests/faults"))

from testbed import Daemon, Programs, Site, wait_for  # noqa: E402


GAMMAS = {"lower_keV": 150, "upper_keV": 349, "before_ticks": 600_000, "after_ticks": 900_000, "delay_ticks": 20_000_000}


def all_records(run):
    """SHA-256 of each kind of records."""
    return [records(run, kind) for kind in KINDS]


class Host:
    """A daemon that receives the boards of one host."""

    def __init__(self, programs, **listmode):
        self.site = Site(programs, {"gammas": GAMMAS,
                                    "listmode": {"write_singles": True, "block_bytes": 8192, "sync_interval_ms": 100,
                                                 **listmode}})
        self.daemon = Daemon(self.site)
        self.run = pathlib.Path(self.site.data) / "r"

    def start(self):
        self.daemon.client.call("start", run="r")

    def stop(self):
        self.daemon.client.call("stop")

    def running(self):
        return json.loads((self.run / "run.json").read_text())["state"] == "running"


class Job:
    """mpirun petlm-mpi --follow."""

    def __init__(self, test, output, *options):
        self.output = output
        self.log = open(f"{output}.log", "ab")
        self.process = subprocess.Popen(
            ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", BIN / "petlm-mpi", "--follow",
             *(host.run for host in test.hosts), "-o", output, "--backend", "cpu", "--shard-singles", "20000", *options],
            stdout=self.log, stderr=self.log)
        test.addCleanup(self.stop)

    def stop(self):
        """Whatever state it is in: mpirun ends its ranks."""
        if self.process.poll() is None:
            self.process.terminate()
            self.end()

    def said(self):
        return pathlib.Path(f"{self.output}.log").read_text()

    def parts(self):
        return len(list(self.output.glob("*.state")))

    def wait_for_parts(self, count):
        # A part is a second of detector time, or less.
        wait_for(lambda: self.process.poll() is not None or self.parts() >= count, f"{count} parts", 60 + 2 * count)
        if self.process.poll() is not None:
            raise AssertionError(self.said())

    def kill(self, role):
        """kill -9 of mpirun, or of one of its ranks, which ends the others."""
        target = self.process.pid
        if role == "rank":
            target = int(subprocess.run(["pgrep", "-P", str(target)], capture_output=True, text=True).stdout.split()[-1])
        os.kill(target, signal.SIGKILL)
        self.end()

    def end(self):
        status = self.process.wait(120)
        self.log.close()
        return status


class Follow(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.work = pathlib.Path(self.temporary.name)
        self.programs = Programs(str(BIN), str(SOURCE), self.temporary.name)
        # Files side by side and one after the other, and compressed blocks.
        self.hosts = [Host(self.programs, files=2, split_s=1), Host(self.programs, compression="zstd")]
        for host in self.hosts:
            self.addCleanup(host.daemon.end)

    def send(self, seconds):
        """Boards in turn to each host, in real time."""
        to = [word for host in self.hosts for word in ("--to", f"127.0.0.1:{host.daemon.ports[0]}")]
        sender = subprocess.Popen(
            [BIN / "petsim", "--crystals", "surface", "--scanner", self.work / "bare.scanner.json", "--calibration", self.programs.calibration,
             "--cylinder", "0,0,0,10,20,1", "--rate", "60000", "--duration-s", str(seconds), "--start-time-s", "7.3",
             "--sources", "8", "--flush-us", "4000", "--tag-clock", "3:0.01", "--seed", "5", "--threads", "1",
             "--no-end-of-stream", "--quiet", *to])
        self.addCleanup(sender.wait)
        self.addCleanup(sender.kill)
        return sender

    def expected(self, runs, *options):
        output = self.work / f"expected{len(list(self.work.glob('expected*')))}"
        self.programs.run("petlm", "resort", *map(str, runs), "-o", str(output), *options)
        return all_records(output)

    def check(self, job, expected):
        self.assertEqual(job.end(), 0, job.said())
        self.assertEqual(all_records(job.output), expected, job.said())
        self.assertGreater(json.loads((job.output / "run.json").read_text())["ledger"]["gammas"]["triples"], 100)
        self.assertFalse(list(job.output.glob("*.lock")) + list(job.output.glob("*.partial*")))

    def test_behind_by_seconds_and_killed(self):
        output = self.work / "out"
        job = Job(self, output)
        wait_for(lambda: "waiting for" in job.said(), "the job waits for the runs")
        for host in self.hosts:
            host.start()
        sender = self.send(100)
        kills = 0
        for role in ("rank", "mpirun"):
            for moment in range(10 if LONG else 1):
                job.wait_for_parts(job.parts() + 1 + moment)
                job.kill(role)
                kills += 1
                self.assertFalse((output / "run.json").exists())
                job = Job(self, output)
                wait_for(lambda: job.said().count("going on after") == kills, "the ranks of the killed job end")
        job.wait_for_parts(job.parts() + 2)
        self.assertTrue(all(host.running() for host in self.hosts))
        sender.terminate()
        for host in self.hosts:
            host.stop()
        self.check(job, self.expected([host.run for host in self.hosts]))
        self.programs.run("petlm", "verify", str(output))

    def kill_a_daemon(self, parts):
        """Both daemons have written so many parts; the second one is killed, the first one goes on."""
        for host in self.hosts:
            host.start()
        jobs = [Job(self, self.work / f"common{parts}"),
                Job(self, self.work / f"partial{parts}", "--partial")]
        sender = self.send(100)
        for job in jobs:
            job.wait_for_parts(parts)
        self.hosts[1].daemon.kill()
        wait_for(lambda: "interrupted" in jobs[0].said(), "the job notices")
        jobs[0].kill("rank")
        jobs[0] = Job(self, jobs[0].output)
        jobs[1].wait_for_parts(jobs[1].parts() + 5)  # the time that only the first host has
        self.assertTrue(self.hosts[0].running())
        sender.terminate()
        self.hosts[0].stop()
        recovered = self.work / f"recovered{parts}"
        self.programs.run("petlm", "recover", str(self.hosts[1].run), "-o", str(recovered))
        runs = [self.hosts[0].run, recovered]
        self.check(jobs[0], self.expected(runs))
        self.check(jobs[1], self.expected(runs, "--partial"))
        found = [json.loads((job.output / "run.json").read_text()) for job in jobs]
        self.assertEqual([run["state"] for run in found], ["interrupted", "interrupted"])
        self.assertEqual(found[0]["resorted"]["missing"], [])
        self.assertIn(str(self.hosts[1].run), [missing["run"] for missing in found[1]["resorted"]["missing"]])

    def test_a_killed_daemon(self):
        self.kill_a_daemon(4)


if LONG:
    for number in range(9):
        setattr(Follow, f"test_a_killed_daemon_after_{7 + 5 * number}",
                lambda self, parts=7 + 5 * number: self.kill_a_daemon(parts))

if __name__ == "__main__":
    if shutil.which("mpirun") is None or not (BIN / "petlm-mpi").exists():
        print("skipped: no MPI; tools/setup --cluster installs it")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
