#!/usr/bin/env python3
"""The units under a real systemd, which is PID 1 of namespaces of its own over an overlay of this machine's root.

real_systemd_test.py DIRECTORY_OF_PROGRAMS DIRECTORY_OF_UNITS SOURCE_DIRECTORY service|watchdog

Needs root and systemd; exit status 77, with the reason, where it cannot be. Nothing of it is seen outside, and
everything goes away with it. Network: loopback of a network namespace of its own.
"""

import ctypes
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from machine import Failure, check, eventually, skip_unless_possible  # noqa: E402
from service_machine import ServiceMachine  # noqa: E402

programs, units, source = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
subject = sys.argv[4]
skip_unless_possible()


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
        """Kills it. A tracer must also wait for its thread."""
        self.ended = self.ended or os.waitpid(self.thread, os.WNOHANG | self.wall)[0] == self.thread
        return self.ended


def the_service(m):
    journal = m.boot()
    start(m)
    hardening(m)
    a_run(m, journal)
    reload(m)
    stop_with_a_run(m)
    crash(m, journal)
    bad_configuration(m)
    taken_port(m)
    socket_unit(m)
    early_socket(m)
    bad_configuration_with_traffic(m)


def start(m):
    m.systemctl("start", "petacqd.service")
    # `systemctl start` waits for READY.
    check(m.show("ActiveState") == "active", "started")
    check(m.status()["state"] == "idle", "answers when start returns")
    check(m.show("StatusText").startswith("idle: "), "says how it is: " + m.show("StatusText"))


def hardening(m):
    host = m.main_process()
    status = (host / "status").read_text()
    check(re.search(r"^Seccomp:\s2$", status, re.M), "system calls are filtered")
    check(re.search(r"^NoNewPrivs:\s1$", status, re.M), "no new privileges")
    check(re.search(r"^CapEff:\s0+$", status, re.M) and re.search(r"^CapBnd:\s0+$", status, re.M), "no capabilities")
    uid = m.run("id", "-u", "petacq").stdout.strip()
    check(re.search(rf"^Uid:\s{uid}\s{uid}", status, re.M) and uid != "0", "runs as petacq")
    mounts = {line.split()[4]: line.split()[5] for line in (host / "mountinfo").read_text().splitlines()}
    check(mounts["/"].startswith("ro"), "the system is read-only for it")
    for directory in ("/var/lib/petacqd", "/var/cache/petacqd"):
        check(any(at.endswith(directory) and how.startswith("rw") for at, how in mounts.items()), f"{directory} is writable")
    owned = m.run("find", "/etc", "/home", "/opt", "/srv", "/var", "-xdev", "-user", "petacq").stdout.split()
    check(set(owned) <= {"/var/lib/petacqd", "/var/cache/petacqd"}, "petacq owns nothing but its state and cache")
    # Without the right to raise limits, systemd silently leaves them unchanged.
    limits = (host / "limits").read_text()
    for name in ("Max locked memory", "Max realtime priority"):
        line = next(line for line in limits.splitlines() if line.startswith(name))
        print(f"note: {' '.join(line.split())}")


def a_run(m, journal):
    m.run("petctl", "start", "--run", "r1")
    m.send(20)
    eventually(lambda: m.status()["ledger"]["datagrams"]["received"] == 20, "a run receives")
    m.run("petctl", "stop")
    check("r1" in m.run("ls", "/var/lib/petacqd").stdout, "a run is in the state directory")
    if journal:
        eventually(lambda: any("run r1 complete" in entry["MESSAGE"] for entry in m.journal("PETACQ_RUN=r1")),
                   "the journal finds what happened in the run")
        check(all(entry["_SYSTEMD_UNIT"] == "petacqd.service" for entry in m.journal("PETACQ_RUN=r1")), "the journal knows the unit")


def reload(m):
    main = m.show("MainPID")
    m.configure(log_level="debug")
    m.systemctl("reload", "petacqd.service")
    # The signal has been sent when reload returns; older versions of systemd wait no longer.
    eventually(lambda: m.run("petctl", "log-level").stdout.strip() == "debug", "what reload brings is in force")
    check(m.show("ActiveState") == "active" and m.show("MainPID") == main, "reload keeps it running")
    m.configure(text="{")
    check(m.systemctl("reload", "petacqd.service", check_it=False).returncode != 0, "reload of a bad file is refused aloud")
    check(m.show("MainPID") == main and m.status()["state"] == "idle", "and leaves the daemon alone")
    m.configure()


def state_of(m, run):
    return json.loads(m.path(f"/var/lib/petacqd/{run}/run.json").read_text())["state"]


def stop_with_a_run(m):
    m.run("petctl", "start", "--run", "r2")
    m.scan(0.3)
    # Silent sources delay the end of the run by 1.5 s; TimeoutStopSec= is 1 s.
    m.systemctl("stop", "petacqd.service")
    check(m.show("ActiveState") == "inactive" and m.show("Result") == "success", "stopped cleanly, later than TimeoutStopSec=")
    check(state_of(m, "r2") == "complete", "with its run complete")
    check(m.run("ls", "/run/petacqd", check_it=False).returncode != 0, "its runtime directory is gone")


def crash(m, journal):
    m.systemctl("start", "petacqd.service")
    m.run("petctl", "start", "--run", "r3")
    m.scan(0.3)
    if journal:
        eventually(lambda: any("silent" in entry["MESSAGE"] and entry.get("PETACQ_RUN") == "r3"
                               for entry in m.journal("PETACQ_SOURCE=2")), "the journal finds what happened to a source")
    main = m.kill()
    eventually(lambda: m.up_again(main), "restarted after SIGKILL")
    check(m.show("NRestarts") == "1", "counted as one restart")
    check(m.status()["state"] == "idle", "it answers again")
    check(state_of(m, "r3") == "running", "a run that was in progress is not called complete")
    listed = json.loads(m.run("petctl", "runs", "--json").stdout)["runs"]
    check([run["state"] for run in listed if run["run"] == "r3"] == ["interrupted"], "and listed as interrupted")
    m.run("petctl", "start", "--run", "r4")
    m.run("petctl", "stop")
    check(state_of(m, "r4") == "complete", "and takes the next run")


def starved_watchdog(m):
    journal = m.boot()
    m.override(limit=0, watchdog="6s")
    m.systemctl("start", "petacqd.service")
    main, restarts = m.show("MainPID"), int(m.show("NRestarts"))
    stopped = Stopped(m, "acquisition")
    m.send(50)
    eventually(lambda: stopped.gone() and m.up_again(main),
               f"killed by the watchdog and restarted, with thread {stopped.thread} at a standstill")
    check(int(m.show("NRestarts")) == restarts + 1, "counted as another restart")
    if journal:
        check(any("stage acquisition has stalled" in entry["MESSAGE"] for entry in m.journal("PRIORITY=3")),
              "the journal names the stage")


def bad_configuration(m):
    m.systemctl("stop", "petacqd.service")
    m.configure(text="{}")
    m.systemctl("start", "petacqd.service", check_it=False)
    eventually(lambda: m.show("ActiveState") == "failed", "a bad configuration fails")
    # A restart would show as `activating`, or in the count of restarts.
    check(m.show("ExecMainStatus") == "78" and m.show("NRestarts") == "0", "status 78 is not restarted")
    check("/scanner" in m.show("StatusText"), "systemctl status says why: " + m.show("StatusText"))
    m.configure()
    m.systemctl("reset-failed", "petacqd.service")


def taken_port(m):
    unit = (units / "petacqd.service").read_text()
    value = {key: int(re.search(rf"^{key}=(\d+)", unit, re.M).group(1)) for key in ("RestartSec", "StartLimitIntervalSec", "StartLimitBurst")}
    check(value["RestartSec"] * value["StartLimitBurst"] > value["StartLimitIntervalSec"], "restarts alone never hit the start limit")
    holder = subprocess.Popen(
        m.enter("python3", "-c", "import socket, sys; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                "s.bind(('127.0.0.1', 9601)); print('bound', flush=True); sys.stdin.read()"),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    check(holder.stdout.readline() == "bound\n", "somebody else has the port")
    m.systemctl("start", "--no-block", "petacqd.service")
    eventually(lambda: int(m.show("NRestarts")) >= 3, "the daemon tries again and again")
    check(m.show("ExecMainStatus") in ("0", "74"), "since that is not its configuration's fault")
    holder.communicate()
    eventually(lambda: m.show("ActiveState") == "active", "and starts when the port is free")
    m.systemctl("stop", "petacqd.service")


def socket_unit(m):
    def accounted():
        datagrams = m.status()["total"]["datagrams"]
        return datagrams["discarded_backlog"] + datagrams["received"]

    m.systemctl("start", "petacqd.socket")
    check(m.show("ActiveState") == "inactive", "the socket waits alone")
    m.send(30)
    eventually(lambda: m.show("ActiveState") == "active", "traffic starts the daemon")
    eventually(lambda: accounted() == 30, "all that came before and meanwhile is accounted for")
    check(m.status()["total"]["datagrams"]["discarded_backlog"] >= 1, "what came before is discarded and counted")
    m.send(10)
    eventually(lambda: accounted() == 40, "then it receives")
    main = m.kill()
    m.send(40)
    eventually(lambda: m.up_again(main), "restarted on the same socket")
    eventually(lambda: accounted() == 40, "nothing is lost over the restart")
    size = re.search(r"\brb(\d+)", m.run("ss", "-uamn", "sport", "=", ":9601", check_it=False).stdout)
    if size:
        check(int(size.group(1)) >= 256 << 20, "the socket buffer is as large as the unit says")
    m.systemctl("stop", "petacqd.socket", "petacqd.service")
    check(m.show("ActiveState") == "inactive", "stopped, socket and all")


def early_socket(m):
    more = m.path("/etc/systemd/system/petacqd.socket.d/early.conf")
    more.write_text("[Socket]\nListenDatagram=\nListenDatagram=192.0.2.1:9601\n")
    m.systemctl("daemon-reload")
    m.systemctl("start", "petacqd.socket")
    check(m.show("ActiveState", "petacqd.socket") == "active", "the socket does not wait for the network")
    m.systemctl("stop", "petacqd.socket")
    more.unlink()
    m.systemctl("daemon-reload")


def bad_configuration_with_traffic(m):
    m.override(limit="30s", watchdog="60s")
    m.configure(text="{}")
    m.systemctl("start", "petacqd.socket")
    m.send(5)
    eventually(lambda: m.show("ActiveState", "petacqd.socket") == "failed", "traffic does not start a bad configuration for ever")
    check(m.show("ExecMainStatus") == "78", "its status is still the reason")
    m.configure()
    # The example of docs/how-to/operations.md.
    m.systemctl("reset-failed", "petacqd.socket", "petacqd.service")
    m.systemctl("start", "petacqd.socket", "petacqd.service")
    check(m.status()["state"] == "idle", "mended, both start again")
    m.systemctl("stop", "petacqd.socket", "petacqd.service")


with tempfile.TemporaryDirectory(prefix="petacq-systemd-") as directory:
    machine = ServiceMachine(pathlib.Path(directory), programs, units, source)
    try:
        {"service": the_service, "watchdog": starved_watchdog}[subject](machine)
    except Failure as failure:
        print(f"FAILED: {failure}")
        machine.explain()
        sys.exit(1)
    finally:
        machine.end()
print("all well")
