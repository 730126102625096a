"""A machine with the programs and units of a build: a daemon under a real systemd, over this machine's root."""

import json
import os
import pathlib
import re
import select
import shutil
import subprocess

from machine import Failure, Machine, eventually

# LeakSanitizer traces its own process, which the filter of system calls forbids.
drop_in = "[Unit]\nDefaultDependencies=no\nWants=\nAfter=\n[Service]\nEnvironment=ASAN_OPTIONS=detect_leaks=0\n"
# Short, so that the tests do not take minutes. The watchdog's interval is long enough for a busy machine; the daemon must
# ask for more time to stop than a second.
shorter = "[Unit]\nStartLimitIntervalSec={limit}\n[Service]\nWatchdogSec={watchdog}\nRestartSec=200ms\nTimeoutStopSec=1s\n"


class ServiceMachine(Machine):
    def __init__(self, work, programs, units, source, scanner="small", short=True, **settings):
        """`programs`, `units`, `source`: directories. `scanner`: of config/examples. `short`: other limits of time than
        those of the installed unit. `settings`: sections of the configuration."""
        self.work = work
        etc = work / "etc"
        (etc / "petacqd").mkdir(parents=True)
        unit_directory = etc / "systemd" / "system"
        for unit in ("petacqd.service", "petacqd.socket"):
            (unit_directory / f"{unit}.d").mkdir(parents=True)
            text = (units / unit).read_text()
            text = re.sub(r"(Exec\w+=)\S*/petacqd\b", r"\1/usr/bin/petacqd", text)
            (unit_directory / unit).write_text(text)
            (unit_directory / f"{unit}.d" / "test.conf").write_text(drop_in)
        if short:
            with open(unit_directory / "petacqd.service.d" / "test.conf", "a") as more:
                more.write(shorter.format(limit=0, watchdog="60s"))
        (unit_directory / "petacq-test.target").write_text("[Unit]\nDefaultDependencies=no\nAllowIsolate=yes\n")
        (etc / "systemd" / "journald.conf").write_text("[Journal]\nReadKMsg=no\nStorage=volatile\n")
        journald = unit_directory / "systemd-journald.service.d"
        journald.mkdir()
        (journald / "test.conf").write_text("[Unit]\nDefaultDependencies=no\n[Service]\nWatchdogSec=0\n")

        self.description, self.calibration = f"/etc/petacqd/{scanner}.scanner.json", f"/etc/petacqd/{scanner}.h5"
        shutil.copy(source / "config" / "examples" / f"{scanner}.scanner.json", etc / "petacqd")
        subprocess.run([programs / "petcal", "make", "--scanner", etc / "petacqd" / f"{scanner}.scanner.json", "--output",
                        etc / "petacqd" / f"{scanner}.h5"], check=True, stdout=subprocess.DEVNULL)
        self.configuration = {
            "scanner": self.description, "calibration": self.calibration, "data_dir": "/var/lib/petacqd",
            "receive": {"sockets": [{"address": "127.0.0.1", "port": 9601}], "batch_count": 16, "batch_bytes": 262144},
            "coincidence": {"window_ticks": 320}, "pipeline": {"backend": "cpu", "threads": 2},
            "watermark": {"source_timeout_ms": 1500}, "http": {"listen": ""},
            **settings}
        (etc / "petacqd" / "petacqd.json").write_text(json.dumps(self.configuration))
        socket_unit = unit_directory / "petacqd.socket"
        socket_unit.write_text(socket_unit.read_text().replace("0.0.0.0:9601", "127.0.0.1:9601"))
        super().__init__(work, f"""
set -e
cd "$1"
mkdir -p usr/bin usr/lib/sysusers.d usr/lib/tmpfiles.d
cp {programs}/petacqd {programs}/petctl {programs}/petlm {programs}/petsim usr/bin/
cp {source}/systemd/petacqd.sysusers usr/lib/sysusers.d/petacqd.conf
cp {source}/systemd/petacqd.tmpfiles usr/lib/tmpfiles.d/petacqd.conf
rm -rf etc/systemd/system
cp -r {etc}/petacqd {etc}/systemd etc/
chmod -R u=rwX,go=rX etc/petacqd
rm -rf var/lib/petacqd var/log/journal
: > etc/machine-id
""", unit="petacq-test.target")

    def boot(self):
        """Returns whether there is a journal."""
        eventually(lambda: self.systemctl("is-system-running", check_it=False).stdout.strip() in ("running", "degraded", "starting"),
                   "a real systemd runs")
        self.run("systemd-sysusers", "petacqd.conf")
        journal = self.systemctl("start", "systemd-journald.socket", "systemd-journald.service", check_it=False).returncode == 0
        if not journal:
            print("note: no journald here")
        return journal

    def override(self, limit, watchdog):
        self.path("/etc/systemd/system/petacqd.service.d/test.conf").write_text(
            drop_in + shorter.format(limit=limit, watchdog=watchdog))
        self.systemctl("daemon-reload")

    def configure(self, **patch):
        text = patch.get("text") or json.dumps({**self.configuration, **patch})
        self.path("/etc/petacqd/petacqd.json").write_text(text)

    def send(self, count):
        """Sends datagrams from within its network."""
        self.run("python3", "-c", "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                 f"for i in range({count}): s.sendto(b'PETF\\1\\0\\0\\1' + i.to_bytes(8, 'big'), ('127.0.0.1', 9601))")

    def scan(self, seconds):
        """A simulated scanner whose boards fall silent without saying so."""
        self.run("petsim", "--crystals", "surface", "--scanner", self.description, "--calibration", self.calibration, "--cylinder",
                 "0,0,0,10,20,0.45", "--sources", 4, "--duration-s", seconds, "--no-end-of-stream", "--to", "127.0.0.1:9601")

    def main_process(self):
        """The directory of the daemon in /proc, outside the namespaces. Machines beside this one use the same PIDs."""
        main = self.show("MainPID")
        ours = os.readlink(f"/proc/{self.pid}/ns/pid")
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if os.readlink(process / "ns/pid") == ours and re.search(
                        rf"^NSpid:.*\s{main}$", (process / "status").read_text(), re.M):
                    return process
            except OSError:
                continue
        raise Failure("no main process")

    def kill(self):
        """Kills the daemon; returns its main PID when it receives no more."""
        main, process = self.show("MainPID"), self.main_process()
        gone = os.pidfd_open(int(process.name))
        self.systemctl("kill", "-s", "KILL", "petacqd.service")
        select.select([gone], [], [])
        os.close(gone)
        return main

    def up_again(self, main):
        return self.show("MainPID") not in ("0", main) and self.show("ActiveState") == "active"
