#!/usr/bin/env python3
"""A night at the scanner, as an operator sees it: the live page in Chromium, `petctl watch` in a terminal.

night_test.py DIRECTORY_OF_PROGRAMS DIRECTORY_OF_UNITS SOURCE_DIRECTORY [--pictures DIRECTORY]

The daemon is a service of a real systemd in namespaces, with the unit as installed; petsim is the scanner. A run is
started on the page, a module gets hot, a board goes silent, and the daemon is killed. In the morning the operator does
what page and terminal say, word for word. Needs root, systemd, Chromium and python3-pyte; exit status 77, with the reason,
where it cannot be. --pictures writes a picture of each step, for docs/how-to/night.md.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

arguments = argparse.ArgumentParser()
for name in ("programs", "units", "source"):
    arguments.add_argument(name, type=lambda text: pathlib.Path(text).resolve())
arguments.add_argument("--pictures", type=lambda text: pathlib.Path(text).resolve())
given = arguments.parse_args()

sys.dont_write_bytecode = True
for folder in ("tests/systemd", "tools"):
    sys.path.insert(0, str(given.source / folder))
import browser  # noqa: E402
from machine import Failure, check, eventually, skip, skip_unless_possible  # noqa: E402
from service_machine import ServiceMachine  # noqa: E402

skip_unless_possible()
chromium = browser.find()
if chromium is None:
    skip("no Chromium here (tools/setup --browser)")
try:
    from screens import LivePage, Shell, Watch, see
except ImportError as missing:
    skip(f"{missing} (tools/setup --browser)")
from album import Album  # noqa: E402

TOKEN = "nobody-guesses-this-token"
HOT, SILENT = 9, 12  # a module, and a source
# Seconds after the boards are switched on. A picture needs some time behind it.
HOT_AT, SILENT_AT = (75, 90) if given.pictures else (8, 11)
NIGHT, MORNING = "night-7", "morning-8"
DATA = "/var/lib/petacqd"
# How requests end when the daemon is killed: before, while or after it answers, and while there is none.
BY_THE_KILL = ("net::ERR_CONNECTION_", "net::ERR_EMPTY_RESPONSE", "net::ERR_CONTENT_LENGTH_MISMATCH")
# A machine of tests may be much busier than an operator's: the page waits longer there before it says that the daemon does
# not answer.
PATIENT = "const limit = AbortSignal.timeout; AbortSignal.timeout = ms => limit.call(AbortSignal, 12 * ms);"


def coincidences(file):
    """A line of text for each in whole blocks."""
    dump = subprocess.run([given.programs / "petlm", "dump", file], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, check=False)
    return dump.stdout.splitlines()[1:]


class Gate:
    """While it exists, the daemon that systemd starts waits, so that there is time to look at a page without one."""

    def __init__(self, machine):
        self.pipe = machine.path("/run/gate")
        self.end = None

    @staticmethod
    def build(machine):
        """Before the service is started for the first time."""
        machine.path("/etc/systemd/system/petacqd.service.d/gate.conf").write_text(
            "[Service]\nExecStartPre=/bin/sh -c 'test ! -p /run/gate || cat /run/gate'\n")
        machine.systemctl("daemon-reload")

    def __enter__(self):
        os.mkfifo(self.pipe)
        os.chmod(self.pipe, 0o644)
        return self

    def open(self):
        """Whether somebody waits."""
        try:
            self.end = os.open(self.pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return False
        return True

    def __exit__(self, *_):
        self.pipe.unlink()
        if self.end is not None:
            os.close(self.end)


class Night:
    def __init__(self, machine, page, album):
        self.machine, self.page, self.album = machine, LivePage(page), album
        self.shell = self.watch = None

    def step(self, title):
        print(f"\n== {title}", flush=True)

    def both_show(self, *words, tab, absent=()):
        """`tab`: what the titles of tab and window begin with. A terminal has no symbol in its title."""
        self.page.top()
        see(self.page, tab, *words, absent=absent)
        see(self.watch, tab.split(" ", 1)[1], *words, absent=absent)

    def no_complaints(self, but=()):
        complaints = [text for text in self.page.page.complaints if not any(way in text for way in but)]
        check(not complaints, f"the browser has nothing to complain about: {complaints}")

    def switch_boards_on(self, start_s, *faults):
        """They are a service, which systemd stops."""
        m = self.machine
        m.run("systemd-run", "--unit=boards", "--collect", "-p", "DefaultDependencies=no", "petsim", "--crystals", "surface", "--scanner",
              m.description, "--calibration", m.calibration, "--to", "127.0.0.1:9601", "--cylinder", "0,0,0,12,30,1",
              "--point", "6,0,5,0.2", "--rate", 30000, "--flush-us", 5000, "--start-time-s", start_s, "--duration-s", 3600,
              "--threads", 1, "--quiet", *faults)

    def evening(self):
        self.step("Nothing arrives yet")
        self.page.page.open("http://127.0.0.1:9680/")
        self.watch = Watch(self.machine)
        self.both_show("no frames have arrived", tab="✕ NO DATA")
        self.album.page("1-no-data", self.page.page, to=".tiles")

        self.step("The boards are switched on")
        self.switch_boards_on(0, "--temperature-c", 31, "--temperature-step", f"{HOT}@{HOT_AT}:27",
                              "--silent", f"{SILENT}@{SILENT_AT}-3600")
        self.both_show("frames arrive, no run is in progress", tab="■ NOT RECORDING")
        if given.pictures:
            eventually(lambda: (self.machine.status()["rates"]["prompts_per_s"] or 0) > 5000, "full rates")
            eventually(lambda: self.page.words(".tile dd").split()[0] not in ("0", "–"), "the page shows them")
        self.album.page("2-not-recording", self.page.page, to=".tiles")

    def start(self, run, note, picture=None):
        """On the page."""
        if not self.page.ask("document.getElementById('control-token').value"):
            self.page.enter("#control-token", TOKEN)
        self.page.enter("#start-run", run)
        self.page.enter("#start-note", note)
        if picture:
            self.album.page(picture, self.page.page, of="#control")
        self.page.page.click("#start")
        eventually(lambda: self.page.words("#control-answer") == f"Run {run} has started. The strip at the top says whether data arrive.", "the page confirms it")

    def begin(self):
        self.step("A run is started on the page")
        self.start(NIGHT, "cylinder 2, over night", "3-start")
        self.both_show(f"run {NIGHT}:", "prompts", tab=f"● RECORDING {NIGHT}")
        if given.pictures:
            eventually(lambda: self.machine.status()["recording"]["elapsed_s"] > 60, "a minute has passed")
        self.album.page("4-recording", self.page.page)
        self.album.terminal("4-recording-watch", self.watch)

    def first_row(self, table, name):
        eventually(lambda: self.page.words(f"#{table} tbody th") == name, f"the table of {table} begins with {name}")

    def trouble(self):
        self.step("A module gets hot")
        self.both_show(f"BDM {HOT} is at", "above 50 C: check the cooling", tab=f"● RECORDING {NIGHT}")
        self.album.page("5-hot", self.page.page, to=".tiles")
        self.first_row("modules", str(HOT))
        self.album.page("5-hot-modules", self.page.page, of="[aria-labelledby=modules-title]")
        self.step("A board goes silent")
        self.both_show(f"source {SILENT} has been silent", "check power and cable", f"BDM {HOT} is at",
                       tab=f"● RECORDING {NIGHT}")
        see(self.page, "– DEGRADED")
        self.first_row("sources", str(SILENT))
        self.album.page("6-silent", self.page.page)
        self.album.terminal("6-silent-watch", self.watch)

    def killed(self):
        """Returns the coincidences that were written before, and the file."""
        self.step("The daemon is killed")
        self.no_complaints()

        def written():
            return self.machine.status()["ledger"]["pairs"]["written"]

        eventually(lambda: written() > 1000, "coincidences have been written")
        known = written()
        on_disk = self.machine.path(f"{DATA}/{NIGHT}/coincidences.plm").read_bytes()
        with Gate(self.machine) as gate:
            main = self.machine.kill()
            self.both_show("daemon does not answer", tab="? UNKNOWN", absent=[f"RECORDING {NIGHT}"])
            self.album.page("7-killed", self.page.page, to=".tiles")
            self.step("systemd starts it again")
            eventually(gate.open, "systemd has begun to start it")
        eventually(lambda: self.machine.up_again(main), "the daemon runs again")
        check(self.machine.show("NRestarts") == "1", "systemd has restarted it, once")
        return known, on_disk

    def morning(self):
        """Returns the commands that are shown: to save the run, and to end the report."""
        self.step("In the morning page and terminal name the run and what to do")
        self.both_show(f"run {NIGHT}", "petlm recover", f"petctl acknowledge {NIGHT}", tab=f"▲ INTERRUPTED {NIGHT}")
        eventually(lambda: self.page.ask("day.runs().filter(run => run.interrupted).map(run => run.run).join()") == NIGHT,
                   "the charts mark the run")
        self.album.page("8-interrupted", self.page.page)
        self.shell = Shell(self.machine, DATA)
        rows = self.shell.run("petctl status")
        self.album.terminal("8-interrupted-status", self.shell)
        check("INTERRUPTED" in rows[0] and NIGHT in rows[0], f"petctl status begins with: {rows[0]}")
        commands = [row.strip() for row in rows if re.match(r" +(petlm recover|petctl acknowledge) ", row)]
        check(len(commands) == 2, f"it shows what to do: {'; '.join(commands)}")
        for command in commands:
            check(command in self.page.words("#recording"), f"the page shows it, too: {command}")
        return commands

    def save(self, recover, acknowledge):
        self.step("The run is saved by the commands as they are shown")
        self.shell.clear()
        self.shell.run(recover)
        rows = self.shell.run(f"petlm verify {NIGHT}.recovered")
        check(not any(" left" in row for row in rows), f"no progress stays between its results: {rows}")
        check(self.machine.run("petlm", "verify", f"{DATA}/{NIGHT}.recovered", check_it=False).returncode == 0,
              "what has been saved is sound")
        self.shell.run(acknowledge)
        self.shell.run(f"petlm plot {NIGHT}.recovered")
        self.album.terminal("9-saved", self.shell)
        self.both_show(tab="■ NOT RECORDING", absent=["INTERRUPTED", "interrupted"])

    def nothing_is_lost(self, known, on_disk):
        self.step("Nothing that was on disk is lost")
        run, saved = (self.machine.path(f"{DATA}/{name}") for name in (NIGHT, f"{NIGHT}.recovered"))
        check((run / "coincidences.plm").read_bytes().startswith(on_disk), "the file of the run is as it was")
        copy = self.machine.work / "coincidences.plm"
        copy.write_bytes(on_disk)
        before, after = coincidences(copy), coincidences(saved / "coincidences.plm")
        check(0 < known <= len(before) and after[:len(before)] == before,
              f"{len(before)} coincidences were on disk, and are the first of those saved")
        counts = json.loads((saved / "run.json").read_text())["ledger"]["pairs"]
        check(counts["written"] == len(after), f"{len(after)} coincidences are saved, as the ledger says")

    def report(self):
        self.step("The report is opened from the list of runs")
        link = f'a[aria-label="Report of run {NIGHT}.recovered"]'
        eventually(lambda: self.page.words(link) == "report", "the list of runs has a link to it")
        self.album.page("10-runs", self.page.page, of="[aria-labelledby=runs-title]")
        self.page.page.click(link)
        eventually(lambda: NIGHT in self.page.words("h1"), f"the report is of run {NIGHT}")
        self.album.page("11-report", self.page.page)
        self.page.page.back()

    def next_run(self):
        self.step("The board is mended, the module is cool: the next run")
        self.machine.systemctl("stop", "boards.service")
        self.both_show(tab="✕ NO DATA")
        self.switch_boards_on(1000, "--temperature-c", 31)
        self.both_show(tab="■ NOT RECORDING", absent=["silent", "above 50 C"])
        self.start(MORNING, "cylinder 2, again")
        self.both_show(f"run {MORNING}:", "prompts", tab=f"● RECORDING {MORNING}")
        self.page.page.click("#stop")
        eventually(lambda: self.page.ask("document.getElementById('stop-question').open"), "the page asks again")
        self.album.page("12-stop", self.page.page)
        self.page.page.click("#stop-yes")
        eventually(lambda: self.page.words("#control-answer") == f"Run {MORNING} is stopped and on disk.",
                   "the page confirms the stop")
        run = json.loads(self.machine.path(f"{DATA}/{MORNING}/run.json").read_text())
        check(run["state"] == "complete" and run["ledger"]["closed"] and run["ledger"]["pairs"]["written"] > 0,
              "a complete run, whose ledger closes")
        self.no_complaints(but=BY_THE_KILL)


def the_night(machine, page, album):
    machine.boot()
    machine.run("useradd", "--no-create-home", "--groups", "petacq", "alice")
    machine.path("/etc/petacqd/token").write_text(TOKEN)
    machine.run("chown", "root:petacq", "/etc/petacqd/token")
    machine.run("chmod", "640", "/etc/petacqd/token")
    Gate.build(machine)
    machine.systemctl("start", "petacqd.service")

    night = Night(machine, page, album)
    night.evening()
    night.begin()
    night.trouble()
    before = night.killed()
    night.save(*night.morning())
    night.nothing_is_lost(*before)
    night.report()
    night.next_run()


with tempfile.TemporaryDirectory(prefix="petacq-night-") as directory:
    machine = ServiceMachine(
        pathlib.Path(directory), given.programs, given.units, given.source, scanner="mouse", short=False,
        coincidence={"window_ticks": 400, "min_module_difference": 2, "delay_ticks": 10000},
        http={"listen": "127.0.0.1:9680", "allow_control": True, "control_token_file": "/etc/petacqd/token"})
    try:
        with browser.Browser(chromium, within=["nsenter", "-t", machine.pid, "-n", "--"]) as started, \
                started.page(**Album.screen) as page:
            page.before(PATIENT)
            the_night(machine, page, Album(started, given.pictures))
    except (Failure, RuntimeError, TimeoutError) as failure:  # the last two: of the browser
        print(f"FAILED: {failure}")
        machine.explain()
        sys.exit(1)
    finally:
        machine.end()
print("all well")
