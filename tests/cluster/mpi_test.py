"""petlm-mpi: the bytes of one host that received all boards, from any number of ranks, disks and interruptions.

mpi_test.py BIN_DIR SOURCE_DIR. Exit status 77: petlm-mpi was not built, or there is no mpirun.
"""

import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

BIN, SOURCE = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
HOSTS = 3
SHARD = "60000"


def run(program, *arguments, **options):
    done = subprocess.run([str(BIN / program), *map(str, arguments)], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise AssertionError(f"{program} {arguments}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def mpirun(ranks, *command):
    return ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), *map(str, command)]


def records(run_directory, kind=None):
    """SHA-256 of what a program prints of the run."""
    options = ["--seconds"] if kind == "seconds" else []
    target = run_directory / "tags.plm" if kind == "tags" else run_directory
    return hashlib.sha256(run("petlm", "dump", *options, target).encode()).hexdigest()


class Mpi(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.site = pathlib.Path(cls.temporary.name)
        scanner = cls.site / "scanner.json"
        shutil.copy(SOURCE / "config/examples/mouse.scanner.json", scanner)
        sources = [source["id"] for source in json.loads(scanner.read_text())["sources"]]
        calibration = cls.site / "calibration.h5"
        run("petcal", "make", "--scanner", scanner, "--output", calibration, "--seed", 7)
        capture = cls.site / "all.pcap"
        run("petsim", "--scanner", scanner, "--calibration", calibration, "--seed", 3, "--duration-s", 1.3,
            "--rate", 600000, "--to", "127.0.0.1:9655", "--write", capture, "--tag-clock", "3:0.002")
        shares = {"one": sources} | {f"host{i}": sources[i::HOSTS] for i in range(HOSTS)}
        for name, ids in shares.items():
            configuration = {
                "scanner": "scanner.json", "calibration": "calibration.h5", "data_dir": name,
                "receive": {"sockets": [{"address": "127.0.0.1", "port": 9655}]},
                "energy": {"lower_keV": 350, "upper_keV": 650},
                "coincidence": {"window_ticks": 400, "min_module_difference": 2, "delay_ticks": 10000},
                "sources": {"ids": ids}, "listmode": {"write_singles": True, "block_bytes": 65536},
                "pipeline": {"backend": "cpu"}, "control": {"socket": "socket"}}
            file = cls.site / f"{name}.json"
            file.write_text(json.dumps(configuration))
            (cls.site / name).mkdir()
            run("petacqd", "--config", file, "--replay", capture, "--run", "r")
        cls.hosts = [cls.site / f"host{i}" / "r" for i in range(HOSTS)]
        stops = [json.loads((host / "run.json").read_text())["stop_ticks"] for host in cls.hosts]
        cls.to = min(stops) - 1
        run("petlm", "resort", cls.site / "one" / "r", "-o", cls.site / "expected", "--to-ticks", cls.to)
        cls.expected = [records(cls.site / "expected", kind) for kind in (None, "seconds", "tags")]

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def job(self, output, *options):
        return [BIN / "petlm-mpi", *self.hosts, "-o", output, "--to-ticks", self.to, "--shard-singles", SHARD,
                "--backend", "cpu", *options]

    def check(self, output):
        self.assertEqual([records(output, kind) for kind in (None, "seconds", "tags")], self.expected)
        run("petlm", "verify", output)

    def test_ranks(self):
        for ranks in (1, 2, 4):
            output = self.site / f"ranks{ranks}"
            done = subprocess.run(mpirun(ranks, *self.job(output)), capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.check(output)
            self.assertEqual(done.stderr.count("M singles/s, at most"), ranks)

    def test_one_host_by_petlm(self):
        output = self.site / "petlm"
        run("petlm", "resort", *self.hosts, "-o", output, "--to-ticks", self.to, "--shard-singles", SHARD)
        self.check(output)

    def test_local_disks(self):
        """Each rank sees the run of one host only, and an output directory of its own."""
        if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode != 0:
            self.skipTest("mount namespaces are not allowed")
        output = self.site / "local"
        output.mkdir()
        for i in range(HOSTS):
            (self.site / f"disk{i}").mkdir()
        script = self.site / "rank.sh"
        script.write_text(
            "set -e\nr=$OMPI_COMM_WORLD_RANK\n"
            + f'mount --bind "{self.site}/disk$r" "{output}"\n'
            + "".join(f'[ $r = {i} ] || mount -t tmpfs none "{self.site}/host{i}"\n' for i in range(HOSTS))
            + 'exec "$@"\n')
        done = subprocess.run(mpirun(HOSTS, "unshare", "-rm", "sh", script, *self.job(output)),
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        whole = self.site / "gathered"
        whole.mkdir()
        for i in range(HOSTS):
            for file in (self.site / f"disk{i}").iterdir():
                shutil.copy(file, whole)
        self.check(whole)

    def test_a_killed_rank_ends_the_job_and_the_next_one_goes_on(self):
        output = self.site / "killed"
        job = [part if part != SHARD else "4000" for part in self.job(output)]
        killed = 0
        for moment in range(1, 4):
            process = subprocess.Popen(mpirun(2, *job), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            while process.poll() is None and len(list(output.glob("*.state"))) < 20 * moment:
                pass  # until there are that many parts
            ranks = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True).stdout.split()
            if ranks:
                os.kill(int(ranks[-1]), signal.SIGKILL)
                killed += 1
            process.communicate()
            self.assertNotEqual(process.returncode, 0)
            self.assertFalse((output / "run.json").exists())
        self.assertEqual(killed, 3)
        done = subprocess.run(mpirun(3, *job), check=True, capture_output=True, text=True)
        self.assertIn("going on after", done.stderr)
        self.check(output)

    def test_other_settings_are_not_mixed(self):
        output = self.site / "mixed"
        output.mkdir()
        subprocess.run(mpirun(2, *self.job(output)), check=True, capture_output=True)
        (output / "run.json").unlink()
        other = subprocess.run(mpirun(2, *self.job(output, "--window-ticks", "300")), capture_output=True, text=True)
        self.assertNotEqual(other.returncode, 0)
        self.assertIn("other runs or settings", other.stderr)

    def test_a_run_that_no_rank_can_read(self):
        job = [BIN / "petlm-mpi", self.site / "nowhere", "-o", self.site / "none"]
        done = subprocess.run(mpirun(2, *job), capture_output=True, text=True)
        self.assertEqual(done.returncode, 64)
        self.assertIn("no rank can read", done.stderr)


if __name__ == "__main__":
    if shutil.which("mpirun") is None or not (BIN / "petlm-mpi").exists():
        print("skipped: no MPI; tools/setup --cluster installs it")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
