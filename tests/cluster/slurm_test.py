"""The scripts of tools/petlm/slurm/ under a real slurmctld and slurmd, with tasks that are killed and requeued.

slurm_test.py BIN_DIR SOURCE_DIR. Exit status 77: not root, or Slurm or petlm-mpi is missing.
"""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest
from datetime import datetime

from support import BIN, SOURCE, Site

SCRIPTS = SOURCE.resolve() / "tools" / "petlm" / "slurm"
NEEDED = ("slurmctld", "slurmd", "sbatch", "scontrol", "squeue", "srun")
# One node, without authentication: nobody else is to use it.
CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
StateSaveLocation={directory}
SlurmdSpoolDir={directory}/spool
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,sched_min_interval=100000,batch_sched_delay=0,bf_interval=1
KillWait=1
ReturnToService=2
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def two_free_ports():
    with socket.socket() as a, socket.socket() as b:
        a.bind(("127.0.0.1", 0))
        b.bind(("127.0.0.1", 0))
        return a.getsockname()[1], b.getsockname()[1]


def wait_for(what, condition):
    deadline = time.monotonic() + 60
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited too long for {what}")
        time.sleep(0.05)
    return found


def processes_of(program, *words):
    """Numbers of the processes of a program that have all these words."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue  # it has ended
        if pathlib.Path(line[0]).name == program and all(str(word) in line for word in words):
            found.append(int(process.name))
    return found


def seconds_until(time_of_slurm):
    if time_of_slurm == "Unknown":
        return 0
    return (datetime.fromisoformat(time_of_slurm) - datetime.now()).total_seconds()


class Slurm(Site, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        directory = cls.site / "slurm"
        (directory / "spool").mkdir(parents=True)
        controller, node = two_free_ports()
        file = directory / "slurm.conf"
        cls.host = socket.gethostname().split(".")[0]
        file.write_text(CONFIGURATION.format(host=cls.host, directory=directory, controller_port=controller,
                                             node_port=node))
        path = f"{BIN.resolve()}:{os.environ['PATH']}"
        cls.environment = os.environ | {"SLURM_CONF": str(file), "PATH": path, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                                        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        cls.daemons = []
        for program in (["slurmctld", "-D", "-c"], ["slurmd", "-D", "-N", cls.host]):
            with (directory / f"{program[0]}.out").open("w") as log:
                cls.daemons.append(subprocess.Popen(program, env=cls.environment, stdout=log, stderr=log))
        wait_for("the node", lambda: "idle" in cls.ask("sinfo", "-h", "-o", "%T", check=False))

    @classmethod
    def tearDownClass(cls):
        cls.ask("scancel", "--user=root", check=False)
        for daemon in reversed(cls.daemons):
            daemon.terminate()
            daemon.wait()
        super().tearDownClass()

    @classmethod
    def ask(cls, *command, check=True):
        done = subprocess.run(list(map(str, command)), env=cls.environment, cwd=cls.site, capture_output=True, text=True)
        if check and done.returncode != 0:
            raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout.strip()

    def submit(self, script, output, *options, shard=8000):
        return self.ask("sbatch", "--parsable", *options, SCRIPTS / script, output, *self.hosts, "--to-ticks",
                        self.to, "--shard-singles", shard, "--backend", "cpu")

    def state(self, job):
        return dict(word.split("=", 1) for word in self.ask("scontrol", "--oneliner", "show", "job", job).split()
                    if "=" in word)

    def wait_until_done(self, job):
        try:
            wait_for(f"job {job}", lambda: self.state(job)["JobState"] in
                     ("COMPLETED", "FAILED", "CANCELLED", "NODE_FAIL", "TIMEOUT"))
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.ask('squeue')}\n{self.log()}") from None
        self.assertEqual(self.state(job)["JobState"], "COMPLETED", self.log())

    def start_again(self, job, restarts):
        """Slurm would wait for two minutes before it starts a requeued job. Within the second in which it was stopped,
        slurmd refuses to start it."""
        def started():
            now = self.state(job)
            if now["Restarts"] == str(restarts) and now["JobState"] == "PENDING":
                if max(seconds_until(now["StartTime"]), seconds_until(now["EligibleTime"])) > 5:
                    self.ask("scontrol", "update", f"job={job}", "StartTime=now+2", check=False)
            return now["Restarts"] == str(restarts) and now["JobState"] in ("RUNNING", "COMPLETED", "FAILED")
        wait_for(f"job {job} to start again", started)

    def log(self):
        return "\n".join(file.read_text() for file in sorted(self.site.glob("slurm-*.out")))

    def stop(self, output, program, parts, *words):
        """Stops the processes of a program that write to `output` once that has some parts. Returns their numbers."""
        wait_for(f"{parts} parts", lambda: len(list(output.glob("*.state"))) >= parts)
        processes = wait_for(program, lambda: processes_of(program, "--output", output, *words))
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        self.assertFalse((output / "run.json").exists())
        return processes

    def test_array_and_join(self):
        output = self.site / "array"
        array = self.submit("resort-array.sbatch", output, "--array=1-3")
        join = self.submit("resort-join.sbatch", output, f"--dependency=afterok:{array}")
        first = self.stop(output, "petlm", 3, "1/3")
        second = self.stop(output, "petlm", 3, "2/3")
        self.assertEqual((len(first), len(second)), (1, 1))
        self.ask("scontrol", "requeue", f"{array}_1")
        os.kill(second[0], signal.SIGKILL)
        self.start_again(f"{array}_1", 1)
        self.start_again(f"{array}_2", 1)
        self.wait_until_done(join)
        self.assertEqual([self.state(f"{array}_{task}")["Restarts"] for task in (1, 2, 3)], ["1", "1", "0"], self.log())
        self.check(output)
        # The join once more.
        self.wait_until_done(self.submit("resort-join.sbatch", output))
        self.check(output)

    def test_mpi(self):
        output = self.site / "mpi"
        job = self.submit("resort-mpi.sbatch", output, "--ntasks=3")
        ranks = self.stop(output, "petlm-mpi", 6)
        self.assertEqual(len(ranks), 3)
        os.kill(ranks[1], signal.SIGKILL)
        for rank in (ranks[0], ranks[2]):
            os.kill(rank, signal.SIGCONT)
        self.start_again(job, 1)
        self.stop(output, "petlm-mpi", 12)
        self.ask("scontrol", "requeue", job)
        self.start_again(job, 2)
        self.wait_until_done(job)
        self.assertEqual(self.state(job)["Restarts"], "2")
        self.assertIn("going on after", self.log())
        self.check(output)

    def test_parallel(self):
        for name, path in (("parallel", self.environment["PATH"]), ("xargs", f"{self.site / 'tools'}:{BIN.resolve()}")):
            if name == "parallel" and shutil.which("parallel") is None:
                continue
            (self.site / "tools").mkdir(exist_ok=True)
            for tool in ("bash", "seq", "xargs", "grep"):
                if not (self.site / "tools" / tool).exists():
                    (self.site / "tools" / tool).symlink_to(shutil.which(tool))
            output = self.site / f"by {name}"  # a name that has to be quoted
            subprocess.run([SCRIPTS / "resort-parallel", "3", output, *self.hosts, "--to-ticks", str(self.to),
                            "--shard-singles", "200000"], env=self.environment | {"PATH": path}, check=True,
                           capture_output=True)
            self.check(output)


if __name__ == "__main__":
    missing = [program for program in NEEDED if shutil.which(program) is None]
    if not (BIN / "petlm-mpi").exists():
        missing.append("petlm-mpi")
    if missing or os.geteuid() != 0:
        why = f"no {', '.join(missing)}; tools/setup --cluster installs them" if missing else "Slurm is started as root"
        print(f"skipped: {why}")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
