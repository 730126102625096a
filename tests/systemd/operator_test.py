#!/usr/bin/env python3
"""A new operator in a clean system, who knows docs/how-to/operations.md and nothing else.

operator_test.py ROOT PACKAGE.deb OPERATIONS.md

ROOT: a system with what any host has (systemd, dbus, sudo, adduser), and what the package needs in apt's cache; it stays
as it is. Runs the commands of the chapters Install, First acquisition and Remove as they stand there, line by line, as a
user who may use sudo, under a systemd of its own; a line that fails fails the test. Needs root.
"""

import json
import os
import pathlib
import pty
import re
import select
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from machine import Failure, check, eventually, patience, skip_unless_possible  # noqa: E402
from person import clean_machine, code_blocks  # noqa: E402

root, package, manual = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
skip_unless_possible(root / "lib/systemd/systemd")


def commands(chapter):
    """The commands in its code blocks, without comments, each with its continuation lines."""
    text = re.search(rf"^## {chapter}$(.*?)(?=^##)", manual.read_text() + "\n## ", re.M | re.S).group(1)
    found = []
    for block in code_blocks(text):
        for line in re.sub(r"\\\n *", "", block).splitlines():
            line = re.sub(r"(^|\s+)# .*", "", line).strip()
            if line:
                found.append(line)
    return found


class Operator:
    def __init__(self, machine):
        self.machine = machine
        self.said = ""

    def does(self, line):
        """Runs it in a new login, so that new groups are in force."""
        log = self.machine.path("/home/alice/said")
        # Background commands keep running.
        with open(log, "w", encoding="utf-8") as said:
            done = subprocess.run(self.machine.enter("runuser", "-l", "alice", "-c", line), stdin=subprocess.DEVNULL,
                                  stdout=said, stderr=said, timeout=patience * 2, check=False)
        self.said = log.read_text(encoding="utf-8")
        print(f"$ {line}\n{self.said}", end="", flush=True)
        check(done.returncode == 0, f"exit status {done.returncode}")

    def looks(self, line, until, key):
        """Runs a full-screen program, and leaves it by a key when the screen shows `until`."""
        child, terminal = pty.fork()
        if child == 0:
            command = self.machine.enter("runuser", "-l", "alice", "-c", f"TERM=xterm LINES=40 COLUMNS=120 {line}")
            os.execvp(command[0], command)
        print(f"$ {line}", flush=True)
        seen = b""
        end = time.monotonic() + patience
        while until not in seen and time.monotonic() < end:
            if select.select([terminal], [], [], 1)[0]:
                try:
                    seen += os.read(terminal, 65536)
                except OSError:
                    break  # the program has exited
        if until not in seen:
            print(seen.decode(errors="replace"))
        check(until in seen, f"it shows {until.decode()}")
        os.write(terminal, key)
        try:
            while os.read(terminal, 65536):
                pass
        except OSError:
            pass  # a terminal reports its end in this way
        check(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "left by its key")


def page(machine, target):
    """Reads the live page from within the machine's network."""
    program = f"import urllib.request as u; print(u.urlopen('http://127.0.0.1:9680{target}').read().decode())"
    return subprocess.run(["nsenter", "-t", machine.pid, "-n", sys.executable, "-c", program], check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def the_tests(machine):
    machine.wait_until_up()
    alice = Operator(machine)
    for line in commands("Install"):
        if line == "tools/package":
            continue  # done before
        alice.does(line)
    check(machine.show("UnitFileState") == "disabled", "the service is there, and not enabled")

    for line in commands("First acquisition"):
        if line == "petctl watch":
            eventually(lambda: machine.status()["rates"]["prompts_per_s"], "pairs are found")
            charts = page(machine, "/")
            check("<canvas" in charts and "Chart" in page(machine, re.search(r'src="(/?[^"]*chart[^"]*)"', charts).group(1)),
                  "the live page is there, with its charts")
            alice.looks(line, b"first", b"q")
        else:
            alice.does(line)
        if line.startswith("systemctl status"):
            check("idle: 0 frames/s" in alice.said and "ok" in alice.said, "as the manual says")
    run = json.loads(machine.path("/var/lib/petacqd/first/run.json").read_text())
    check(run["state"] == "complete" and run["ledger"]["pairs"]["prompts_found"] > 0, "a whole run with pairs")

    machine.systemctl("reload", "petacqd")
    machine.systemctl("restart", "petacqd")
    check(machine.status()["state"] == "idle", "it restarts")

    for line in commands("Remove"):
        alice.does(line)
    check(machine.path("/var/lib/petacqd/first/run.json").exists(), "runs stay")
    for gone in ("/etc/petacqd", "/var/cache/petacqd", "/run/petacqd", "/usr/bin/petacqd", "/usr/share/doc/petacqd"):
        check(not machine.path(gone).exists(), f"{gone} is gone")


with tempfile.TemporaryDirectory(prefix="petacq-operator-") as directory:
    machine = clean_machine(pathlib.Path(directory), root, package)
    try:
        the_tests(machine)
    except Failure as failure:
        print(f"FAILED: {failure}")
        machine.explain()
        sys.exit(1)
    finally:
        machine.end()
print("all well")
