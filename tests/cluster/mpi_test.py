"""petlm-mpi: the bytes of one host that received all boards, from any number of ranks, disks and interruptions.

mpi_test.py BIN_DIR SOURCE_DIR. Exit status 77: petlm-mpi was not built, or there is no mpirun.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import unittest

from support import BIN, HOSTS, SHARD, Site, run


def mpirun(ranks, *command):
    return ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), *map(str, command)]


class Mpi(Site, unittest.TestCase):
    def job(self, output, *options):
        return [BIN / "petlm-mpi", *self.hosts, "-o", output, "--to-ticks", self.to, "--shard-singles", SHARD,
                "--backend", "cpu", *options]

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
        """Each rank sees the run of one host only, and an output directory of its own. The tags are on that of rank 1."""
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
            + "".join(f'[ $r = {(i + 1) % HOSTS} ] || mount -t tmpfs none "{self.site}/host{i}"\n' for i in range(HOSTS))
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
        self.assertEqual(json.loads((whole / "run.json").read_text())["resorted"]["from"], [str(host) for host in self.hosts])
        self.assertFalse((self.site / "disk0/inputs").exists())

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

    def test_parts_that_petlm_has_begun_are_another_job(self):
        output = self.site / "begun"
        run("petlm", "resort", *self.job(output)[1:], "--part", "1/2")
        done = subprocess.run(mpirun(2, *self.job(output)), capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("other runs or settings", done.stderr)

    def test_other_settings_are_not_mixed(self):
        output = self.site / "mixed"
        output.mkdir()
        subprocess.run(mpirun(2, *self.job(output)), check=True, capture_output=True)
        (output / "run.json").unlink()
        other = subprocess.run(mpirun(2, *self.job(output, "--window-ticks", "300")), capture_output=True, text=True)
        self.assertNotEqual(other.returncode, 0)
        self.assertIn("other runs or settings", other.stderr)

    def test_tags_of_which_a_part_is_missing_are_refused(self):
        run_ = self.site / "lacking"
        shutil.copytree(self.hosts[0], run_)
        (run_ / "tags-0001.plm").unlink()
        done = subprocess.run([BIN / "petlm", "resort", run_, "-o", self.site / "without"], capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("part 1 of its tags is missing", done.stderr)

    def test_a_run_is_not_replaced_by_the_output(self):
        run_ = self.site / "own"
        shutil.copytree(self.hosts[0], run_)
        before = sorted((file.name, file.stat().st_size) for file in run_.iterdir())
        for command in (mpirun(2, BIN / "petlm-mpi"), [BIN / "petlm", "resort"]):
            done = subprocess.run([*command, self.hosts[1], run_, "-o", f"{run_}/", "--force"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 64, done.stderr)
            self.assertIn("is one of the runs", done.stderr)
        self.assertEqual(sorted((file.name, file.stat().st_size) for file in run_.iterdir()), before)

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
