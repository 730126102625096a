"""A machine for tests: a real systemd as PID 1 of namespaces, over an overlay of a root directory. It is invisible
outside and leaves nothing behind. It has its own network namespace, with loopback only."""

import json
import os
import pathlib
import re
import subprocess
import sys
import time

patience = 300  # s; limit of every wait, not an expected duration

namespaces = ["unshare", "--pid", "--fork", "--mount", "--uts", "--ipc", "--cgroup", "--net", "--kill-child",
              "--propagation", "private"]

# $1: work directory, $2: script that prepares the new root, $3: directory below the overlay, $4: first unit
inside = r"""
set -e
ip link set lo up
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/overlay" "$1/root"
mount -t overlay overlay -o "lowerdir=$3,upperdir=$1/upper,workdir=$1/overlay" "$1/root"
cd "$1/root"
mount -t proc proc proc
mount --rbind /sys sys
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs tmp
mount --rbind /dev dev
mkdir -p run/systemd
umount -R sys/fs/cgroup 2>/dev/null || true
mount -t cgroup2 cgroup2 sys/fs/cgroup
mkdir -p put-old
sh "$2" "$1/root"
pivot_root . put-old
umount -l /put-old
rmdir /put-old
exec env -i container=petacq PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit="$4" --log-target=null
"""


class Failure(Exception):
    pass


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def check(condition, what):
    if not condition:
        raise Failure(what)
    print(f"ok: {what}", flush=True)


def eventually(condition, what, limit=patience):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if condition():
            print(f"ok: {what}", flush=True)
            return
        time.sleep(0.1)
    raise Failure(f"in vain: {what}")


def skip_unless_possible(systemd="/lib/systemd/systemd"):
    if os.geteuid() != 0:
        skip("not root")
    for need in (systemd, "/usr/bin/unshare", "/usr/bin/nsenter"):
        if not os.path.exists(need):
            skip(f"no {need}")
    if subprocess.run(namespaces + ["true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        skip("no namespaces may be made here")


class ControlGroup:
    """A control group for the systemd of the machine, removed with it."""

    def __init__(self):
        self.path = None
        lines = [line.split() for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()]
        own = re.search(r"^0::(/.*)$", pathlib.Path("/proc/self/cgroup").read_text(), re.M)
        mounts = [line[4] for line in lines if "cgroup2" in line]
        if own and mounts:
            self.path = pathlib.Path(mounts[0] + own.group(1)) / f"petacq-test-{os.getpid()}"
            self.path.mkdir()

    def enter(self):
        if self.path:
            (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def remove(self):
        end = time.monotonic() + 10
        while self.path and self.path.exists() and time.monotonic() < end:
            for directory, _, _ in os.walk(self.path, topdown=False):
                try:
                    os.rmdir(directory)
                except OSError:
                    pass  # killed processes are still exiting
            time.sleep(0.05)


class Machine:
    def __init__(self, work, furnish, root="/", unit="multi-user.target"):
        """`work`: an empty directory; `furnish`: a shell script, run before systemd with the root as its argument."""
        (work / "inside.sh").write_text(inside)
        (work / "furnish.sh").write_text(furnish)
        (work / "mnt").mkdir()
        self.group = ControlGroup()
        self.process = subprocess.Popen(
            namespaces + ["sh", work / "inside.sh", work / "mnt", work / "furnish.sh", root, unit],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, preexec_fn=self.group.enter)
        self.pid = None
        end = time.monotonic() + patience
        while self.pid is None:
            if self.process.poll() is not None:
                self.end()
                skip(f"the namespaces could not be furnished (exit status {self.process.returncode})")
            if time.monotonic() > end:
                self.end()
                raise Failure("systemd does not begin")
            children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
            if children and pathlib.Path(f"/proc/{children[0]}/comm").read_text().strip() == "systemd":
                self.pid = children[0]
            else:
                time.sleep(0.1)

    def enter(self, *command):
        return ["nsenter", "-t", self.pid, "-a", "--"] + [str(word) for word in command]

    def run(self, *command, check_it=True):
        done = subprocess.run(self.enter(*command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=patience * 2, check=False)
        if check_it and done.returncode != 0:
            raise Failure(f"{command}: {done.stdout}")
        return done

    def path(self, inside_it):
        """Its PID outside the namespaces."""
        return pathlib.Path(f"/proc/{self.pid}/root") / inside_it.lstrip("/")

    def systemctl(self, *words, check_it=True):
        return self.run("systemctl", *words, check_it=check_it)

    def show(self, key, unit="petacqd.service"):
        return self.systemctl("show", "--value", "-p", key, unit).stdout.strip()

    def wait_until_up(self):
        eventually(lambda: self.systemctl("is-system-running", check_it=False).stdout.strip() in ("running", "degraded"),
                   "a real systemd runs")

    def status(self):
        return json.loads(self.run("petctl", "status", "--json").stdout)

    def journal(self, *match):
        self.run("journalctl", "--sync", check_it=False)
        text = self.run("journalctl", "--no-pager", "-o", "json", *match, check_it=False).stdout
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]

    def explain(self):
        for command in (["systemctl", "status", "--no-pager", "-l", "petacqd.service", "petacqd.socket"],
                        ["journalctl", "--no-pager", "-n", "60"]):
            print(self.run(*command, check_it=False).stdout)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.group.remove()
