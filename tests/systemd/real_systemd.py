#!/usr/bin/env python3
"""The units under a real systemd, which is PID 1 of namespaces of its own over an overlay of this machine's root.

real_systemd.py DIRECTORY_OF_PROGRAMS DIRECTORY_OF_UNITS SOURCE_DIRECTORY

Needs root and systemd; exit status 77, with the reason, where it cannot be. Nothing of it is seen outside, and
everything goes away with it. Network: loopback of a network namespace of its own.
"""

import ctypes
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

programs, units, source = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
systemd = pathlib.Path("/lib/systemd/systemd")
patience = 90


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


if os.geteuid() != 0:
    skip("not root")
for need in (systemd, "/usr/bin/unshare", "/usr/bin/nsenter", "/usr/bin/systemctl"):
    if not os.path.exists(need):
        skip(f"no {need}")
namespaces = ["unshare", "--pid", "--fork", "--mount", "--uts", "--ipc", "--cgroup", "--net", "--kill-child",
              "--propagation", "private"]
if subprocess.run(namespaces + ["true"], stderr=subprocess.DEVNULL).returncode != 0:
    skip("no namespaces may be made here")

drop_in = "[Unit]\nDefaultDependencies=no\nWants=\nAfter=\n"

inside = r"""
set -e
work=$1
ip link set lo up
mount -t tmpfs tmpfs "$work"
mkdir "$work/upper" "$work/overlay" "$work/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$work/upper,workdir=$work/overlay" "$work/root"
cd "$work/root"
mount -t proc proc proc
mount --rbind /sys sys
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs tmp
mount --rbind /dev dev
mkdir -p run/systemd
umount -R sys/fs/cgroup 2>/dev/null || true
mount -t cgroup2 cgroup2 sys/fs/cgroup
mkdir -p put-old
sh "$2" "$work/root"
pivot_root . put-old
umount -l /put-old
exec env -i container=petacq PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=petacq-test.target --log-target=null
"""


class Failure(Exception):
    pass


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


class ControlGroup:
    """One of our own, below which the systemd within makes its own; it goes away with it."""

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
                    pass  # what was killed is not gone yet
            time.sleep(0.05)


class Machine:
    def __init__(self, work):
        self.work = work
        self.group = ControlGroup()
        (work / "inside.sh").write_text(inside)
        (work / "mnt").mkdir()
        self.write_populate()
        self.process = subprocess.Popen(namespaces + ["sh", work / "inside.sh", work / "mnt", work / "populate.sh"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, preexec_fn=self.group.enter)
        self.pid = None
        end = time.monotonic() + patience
        while self.pid is None:
            children = self.process.poll() is None and pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
            if children and pathlib.Path(f"/proc/{children[0]}/comm").read_text().strip() == "systemd":
                self.pid = children[0]
            if self.process.poll() is not None:
                self.end()
                skip(f"the namespaces could not be furnished (exit status {self.process.returncode})")
            if time.monotonic() > end:
                raise Failure("systemd does not begin")
            time.sleep(0.1)

    def write_populate(self):
        """Everything that is another than outside; run before the root is changed."""
        etc = self.work / "etc"
        (etc / "petacqd").mkdir(parents=True)
        unit_directory = etc / "systemd" / "system"
        for unit in ("petacqd.service", "petacqd.socket"):
            (unit_directory / f"{unit}.d").mkdir(parents=True)
            text = (units / unit).read_text()
            text = re.sub(r"(Exec\w+=)\S*/petacqd\b", rf"\1/usr/bin/petacqd", text)
            (unit_directory / unit).write_text(text)
            (unit_directory / f"{unit}.d" / "test.conf").write_text(drop_in)
        # The tests shall not take minutes.
        with open(unit_directory / "petacqd.service.d" / "test.conf", "a") as more:
            more.write("StartLimitIntervalSec=0\n[Service]\nWatchdogSec=3s\nRestartSec=200ms\nTimeoutStopSec=30s\n")
        (unit_directory / "petacq-test.target").write_text("[Unit]\nDefaultDependencies=no\nAllowIsolate=yes\n")
        (etc / "systemd" / "journald.conf").write_text("[Journal]\nReadKMsg=no\nStorage=volatile\n")
        journald = unit_directory / "systemd-journald.service.d"
        journald.mkdir()
        (journald / "test.conf").write_text("[Unit]\nDefaultDependencies=no\n[Service]\nWatchdogSec=0\n")

        shutil.copy(source / "config" / "examples" / "small.scanner.json", etc / "petacqd")
        subprocess.run([programs / "petcal", "make", "--scanner", etc / "petacqd" / "small.scanner.json", "--output",
                        etc / "petacqd" / "small.h5"], check=True, stdout=subprocess.DEVNULL)
        self.configuration = {
            "scanner": "small.scanner.json", "calibration": "small.h5", "data_dir": "/var/lib/petacqd",
            "receive": {"sockets": [{"address": "127.0.0.1", "port": 9601}], "batch_count": 16, "batch_bytes": 262144},
            "coincidence": {"window_ticks": 320}, "pipeline": {"backend": "cpu", "threads": 2},
            "http": {"listen": ""}}
        (etc / "petacqd" / "petacqd.json").write_text(json.dumps(self.configuration))
        socket_unit = unit_directory / "petacqd.socket"
        socket_unit.write_text(socket_unit.read_text().replace("0.0.0.0:9601", "127.0.0.1:9601"))
        (self.work / "populate.sh").write_text(f"""
set -e
cd "$1"
mkdir -p usr/bin usr/lib/sysusers.d usr/lib/tmpfiles.d
cp {programs}/petacqd {programs}/petctl usr/bin/
cp {source}/systemd/petacqd.sysusers usr/lib/sysusers.d/petacqd.conf
cp {source}/systemd/petacqd.tmpfiles usr/lib/tmpfiles.d/petacqd.conf
rm -rf etc/systemd/system
cp -r {etc}/petacqd {etc}/systemd etc/
chmod -R u=rwX,go=rX etc/petacqd
rm -rf var/lib/petacqd var/log/journal
: > etc/machine-id
""")

    def run(self, *command, check_it=True):
        done = subprocess.run(["nsenter", "-t", self.pid, "-a", "--"] + [str(word) for word in command],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=patience * 2)
        if check_it and done.returncode != 0:
            raise Failure(f"{command}: {done.stdout}")
        return done

    def systemctl(self, *words, check_it=True):
        return self.run("systemctl", *words, check_it=check_it)

    def show(self, key, unit="petacqd.service"):
        return self.systemctl("show", "--value", "-p", key, unit).stdout.strip()

    def configure(self, **patch):
        text = patch.get("text") or json.dumps({**self.configuration, **patch})
        root = pathlib.Path(f"/proc/{self.pid}/root/etc/petacqd/petacqd.json")
        root.write_text(text)

    def send(self, count):
        """Datagrams from within its network."""
        self.run("python3", "-c", "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                 f"for i in range({count}): s.sendto(b'PETF\\1\\0\\0\\1' + i.to_bytes(8, 'big'), ('127.0.0.1', 9601))")

    def status(self):
        return json.loads(self.run("petctl", "status", "--json").stdout)

    def journal(self, *match):
        text = self.run("journalctl", "--no-pager", "-o", "json", *match, check_it=False).stdout
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]

    def end(self):
        self.process.kill()
        self.process.wait()
        self.group.remove()


class Stopped:
    """One thread of a process, stopped as a debugger does."""
    wall = 0x40000000  # __WALL
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]

    def __init__(self, machine, name):
        self.thread = None
        for group in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if (group / "comm").read_text().strip() != "petacqd" or os.readlink(group / "ns/pid") != os.readlink(
                        f"/proc/{machine.pid}/ns/pid"):
                    continue
                for task in (group / "task").iterdir():
                    if (task / "comm").read_text().strip() == name:
                        self.thread = int(task.name)
            except OSError:
                continue
        if self.thread is None:
            raise Failure(f"no thread {name}")
        for request in (0x4206, 0x4207):  # PTRACE_SEIZE, PTRACE_INTERRUPT
            if self.libc.ptrace(request, self.thread, None, None) != 0:
                raise Failure(f"ptrace: {os.strerror(ctypes.get_errno())}")
        os.waitpid(self.thread, self.wall)
        self.ended = False

    def gone(self):
        """Killed; whoever traces a thread has to take note of its end."""
        self.ended = self.ended or os.waitpid(self.thread, os.WNOHANG | self.wall)[0] == self.thread
        return self.ended


def the_tests(m):
    eventually(lambda: m.systemctl("is-system-running", check_it=False).stdout.strip() in ("running", "degraded", "starting"),
               "a real systemd runs")
    m.run("systemd-sysusers", "petacqd.conf")
    journal = m.systemctl("start", "systemd-journald.socket", "systemd-journald.service", check_it=False).returncode == 0

    # Start: what `systemctl start` waits for is READY.
    m.systemctl("start", "petacqd.service")
    check(m.show("ActiveState") == "active", "started")
    check(m.status()["state"] == "idle", "answers when start returns")
    check(m.show("StatusText").startswith("idle: "), "says how it is: " + m.show("StatusText"))
    main = m.show("MainPID")
    host = next(p for p in pathlib.Path("/proc").glob("[0-9]*") if (p / "comm").exists()
                and (p / "comm").read_text().strip() == "petacqd"
                and re.search(rf"^NSpid:.*\s{main}$", (p / "status").read_text(), re.M))
    status = (host / "status").read_text()

    # Hardening in force.
    check(re.search(r"^Seccomp:\s2$", status, re.M), "system calls are filtered")
    check(re.search(r"^NoNewPrivs:\s1$", status, re.M), "no new privileges")
    check(re.search(r"^CapEff:\s0+$", status, re.M) and re.search(r"^CapBnd:\s0+$", status, re.M), "no capabilities")
    uid = m.run("id", "-u", "petacq").stdout.strip()
    check(re.search(rf"^Uid:\s{uid}\s{uid}", status, re.M) and uid != "0", "runs as petacq")
    mounts = {line.split()[4]: line.split()[5] for line in (host / "mountinfo").read_text().splitlines()}
    check(mounts["/"].startswith("ro"), "the system is read-only for it")
    check(any(at.endswith("/var/lib/petacqd") and how.startswith("rw") for at, how in mounts.items()),
          "its state directory is writable")
    owned = m.run("find", "/", "-xdev", "-user", "petacq").stdout.split()
    check(set(owned) <= {"/var/lib/petacqd"}, "petacq owns nothing but its state")
    limits = (host / "limits").read_text()
    for name in ("Max locked memory", "Max realtime priority"):
        line = next(line for line in limits.splitlines() if line.startswith(name))
        print(f"note: {' '.join(line.split())}")

    # A run under all that.
    m.run("petctl", "start", "--run", "r1")
    m.send(20)
    eventually(lambda: m.status()["ledger"]["datagrams"]["received"] == 20, "a run receives")
    m.run("petctl", "stop")
    check("r1" in m.run("ls", "/var/lib/petacqd").stdout, "a run is in the state directory")
    if journal:
        m.run("journalctl", "--sync", check_it=False)
        found = m.journal("PETACQ_RUN=r1")
        check(any("run r1 complete" in entry["MESSAGE"] for entry in found), "the journal finds what happened in the run")
        check(all(entry["_SYSTEMD_UNIT"] == "petacqd.service" for entry in found), "the journal knows the unit")
    else:
        print("note: no journald here")

    # Reload.
    m.configure(log_level="debug")
    m.systemctl("reload", "petacqd.service")
    check(m.show("ActiveState") == "active" and m.show("MainPID") == main, "reload keeps it running")
    m.configure(text="{")
    check(m.systemctl("reload", "petacqd.service", check_it=False).returncode != 0, "reload of a bad file is refused aloud")
    check(m.show("MainPID") == main and m.status()["state"] == "idle", "and leaves the daemon alone")
    m.configure()

    # Crash.
    m.systemctl("kill", "-s", "KILL", "petacqd.service")
    eventually(lambda: m.show("MainPID") not in ("0", main) and m.show("ActiveState") == "active", "restarted after SIGKILL")
    check(m.show("NRestarts") == "1", "counted as one restart")

    # Watchdog.
    main = m.show("MainPID")
    stopped = Stopped(m, "acquisition")
    m.send(50)
    eventually(lambda: stopped.gone() and m.show("MainPID") not in ("0", main) and m.show("ActiveState") == "active",
               f"killed by the watchdog and restarted, with thread {stopped.thread} at a standstill")
    check(m.show("NRestarts") == "2", "counted as another")

    # Stop.
    m.systemctl("stop", "petacqd.service")
    check(m.show("ActiveState") == "inactive" and m.show("Result") == "success", "stopped cleanly")
    check(m.run("ls", "/run/petacqd", check_it=False).returncode != 0, "its runtime directory is gone")

    # A configuration that cannot be is not tried again.
    m.configure(text="{}")
    m.systemctl("start", "petacqd.service", check_it=False)
    eventually(lambda: m.show("ActiveState") == "failed", "a bad configuration fails")
    time.sleep(1)  # five times RestartSec
    check(m.show("ExecMainStatus") == "78" and m.show("ActiveState") == "failed", "status 78 is not restarted")
    m.configure()
    m.systemctl("reset-failed", "petacqd.service")

    # The socket unit.
    m.systemctl("start", "petacqd.socket")
    check(m.show("ActiveState") == "inactive", "the socket waits alone")
    m.send(30)
    eventually(lambda: m.show("ActiveState") == "active", "traffic starts the daemon")
    eventually(lambda: m.status()["total"]["datagrams"]["discarded_backlog"] >= 1, "what came before is discarded and counted")
    before = m.status()["total"]["datagrams"]["received"]
    m.send(10)
    eventually(lambda: m.status()["total"]["datagrams"]["received"] == before + 10, "then it receives")
    main = m.show("MainPID")
    m.systemctl("kill", "-s", "KILL", "petacqd.service")
    m.send(40)
    eventually(lambda: m.show("MainPID") not in ("0", main) and m.show("ActiveState") == "active", "restarted on the same socket")
    eventually(lambda: (lambda d: d["discarded_backlog"] + d["received"] == 40)(m.status()["total"]["datagrams"]),
               "nothing is lost over the restart")
    grown = m.run("ss", "-uamn", "sport", "=", ":9601", check_it=False).stdout
    size = re.search(r"rb(\d+)", grown)
    if size:
        check(int(size.group(1)) >= 256 << 20, "the socket buffer is as large as the unit says")
    m.systemctl("stop", "petacqd.socket", "petacqd.service")
    check(m.show("ActiveState") == "inactive", "stopped, socket and all")


with tempfile.TemporaryDirectory(prefix="petacq-systemd-") as directory:
    machine = Machine(pathlib.Path(directory))
    try:
        the_tests(machine)
    except Failure as failure:
        print(f"FAILED: {failure}")
        for command in (["systemctl", "status", "--no-pager", "-l", "petacqd.service", "petacqd.socket"],
                        ["journalctl", "--no-pager", "-n", "60"]):
            print(machine.run(*command, check_it=False).stdout)
        sys.exit(1)
    finally:
        machine.end()
print("all well")
