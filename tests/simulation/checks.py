"""What must hold after a simulation. Each check returns texts that begin with its name: `NAME: what does not hold`."""

import collections
import json
import os
import re
import warnings

import numpy as np
from petacq.calibration import Calibration
from petacq.errors import IncompleteWarning
from petacq.plm import PlmFile
from petacq.scanner import Scanner

import reference
from play import KILLED, POWER_CUT, SCANNER, STANDSTILL, SYNC_INTERVAL_MS

MS, S = 10**6, 10**9
CONNECT_NS = 5 * S
# From handing a record over to having it on the disk: a sync may just have begun, and the one after it takes its time.
SYNC_SLACK_NS = 500 * MS
MAX_MEMORY_KB = 200_000
IDENTITY = re.compile(r"<!-- generated: identities (\w+) -->\n```\n(.*?)```", re.DOTALL)


class Identities:
    """Those of docs/reference/ledger.md, evaluated on the numbers of a run."""

    def __init__(self, source):
        with open(os.path.join(source, "docs", "reference", "ledger.md"), encoding="utf-8") as file:
            self.of = {group: re.sub(r"\n +", " ", text).splitlines() for group, text in IDENTITY.findall(file.read())}
        assert self.of, "docs/reference/ledger.md has no identities"

    @staticmethod
    def _sum(text, group, ledger):
        total = 0
        for term in text.split(" + "):
            factor, name = term.split(" x ") if " x " in term else ("1", term)
            where = ledger
            for part in ([group] if "." not in name else []) + name.strip().split("."):
                where = where[part]
            total += int(factor) * where
        return total

    def broken(self, ledger):
        for group, lines in self.of.items():
            for line in lines:
                left, right = line.split(" = ")
                found = self._sum(left, group, ledger), self._sum(right, group, ledger)
                if found[0] != found[1]:
                    yield f"{group}: {line}: {found[0]} and {found[1]}"


def statuses(life):
    """(ns, document) of each answer to the simulation's own requests."""
    if life.statuses is None:
        life.statuses = [(at, json.loads(text)["result"]) for at, text in life.all("answer") if '"id":"status"' in text]
    return life.statuses


def records_of(path):
    """Records up to the last whole block; None without a file."""
    if not os.path.exists(path):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IncompleteWarning)
        file = PlmFile(path)
        parts = list(file.blocks(verify=True))
    return np.concatenate(parts) if parts else np.empty(0, file.dtype)


class Checks:
    def __init__(self, bench):
        self.identities = Identities(bench.source)
        self.boards = len(SCANNER["sources"])
        self.convert = reference.Converter(SCANNER, Calibration.load(bench.calibration, Scanner.load(bench.scanner)))

    def failures(self, story, outcome):
        found = []
        for number, life in enumerate(outcome.lives):
            datagrams = list(reference.arrivals(os.path.join(outcome.directory, "arrived"), number))
            arrived = self.convert.singles([d for _, d in datagrams if reference.well_formed(d, self.boards)])
            found += self._ends(life, outcome.lives[number - 1] if number else None, story, outcome.directory)
            found += self._reception(life, datagrams)
            found += self._health(life, story)
            found += self._runs(life, arrived, story, outcome)
        return found

    # The process

    def _ends(self, life, before, story, directory):
        if life.exit == STANDSTILL:
            return [f"standstill: the threads stand still, or the daemon does not stop: {life.why} {life.log[-300:]}"]
        if life.exit not in (0, KILLED, POWER_CUT):
            if not disturbed(story, life.begin_ns, life.end_ns, "disk_full", "disk_fails"):
                return [f"exit: {life.exit}: {life.log[-500:]}"]
            return []
        found = []
        if life.memory_kb > MAX_MEMORY_KB:
            found.append(f"memory: {life.memory_kb} kB, expected at most {MAX_MEMORY_KB}")
        if life.end_ns - life.begin_ns > CONNECT_NS + 2 * S and not life.all("connected"):
            if not disturbed(story, life.begin_ns, life.begin_ns + CONNECT_NS, "disk_slow"):
                found.append(f"start: no control socket within {CONNECT_NS / S:.0f} s after {life.begin_ns / S:.3f} s")
        if before is not None and before.exit in (KILLED, POWER_CUT):
            found += self._interrupted(life, before, directory)
        return found

    @staticmethod
    def _interrupted(life, before, directory):
        """A run in progress when the power went is named after the restart."""
        last, first = statuses(before)[-1:], statuses(life)[:1]
        if not last or not first or last[0][1]["run"] is None:
            return []
        run = last[0][1]["run"]["id"]
        try:
            with open(os.path.join(directory, "data", run, "run.json"), encoding="utf-8") as file:
                if json.load(file)["state"] != "running":
                    return []  # it had ended since
        except (OSError, ValueError):
            pass
        known = {known["id"] for _, status in statuses(life) for known in status["interrupted"]["runs"]}
        return [] if run in known else [f"interrupted: run {run} is not among {sorted(known)} after the restart"]

    # The ledger

    def _reception(self, life, datagrams):
        if life.exit != 0 or not life.all("terminate"):
            return []
        last = statuses(life)[-1:]
        if not last or any(at > last[0][0] - 300 * MS for at, _ in datagrams):
            return []
        counted = last[0][1]["total"]["datagrams"]
        taken = counted["received"] + counted["dropped_kernel"] + counted["discarded_backlog"]
        if taken != len(datagrams):
            return [f"reception: {len(datagrams)} datagrams arrived; received {counted['received']}, "
                    f"dropped by the kernel {counted['dropped_kernel']}"]
        return []

    # Runs

    def _runs(self, life, arrived, story, outcome):
        found = []
        for _, text in life.all("request"):
            call = json.loads(text)
            if call["method"] == "start":
                found += self._run(call["params"]["run"], life, arrived, story, outcome)
        return found

    def _run(self, name, life, arrived, story, outcome):
        written = written_before(life, name, life.end_ns - SYNC_INTERVAL_MS * MS - SYNC_SLACK_NS)
        directory = os.path.join(outcome.directory, "data", name)
        cut = life.exit == POWER_CUT
        disk_faults = disturbed(story, 0, life.end_ns, "disk_slow", "disk_fails", "disk_full")
        if not os.path.isdir(directory):
            return [f"power: run {name} is not there, though {written} had been written"] if written and max(written.values()) else []
        errors = []
        files = {kind: records_of_run(directory, kind, errors) for kind in ("coincidences", "singles")}
        if cut and not any(written.values()):
            errors.clear()  # not even a header had to be there
        found = [f"files: run {name}: {error}" for error in errors]
        pairs, singles = files["coincidences"], files["singles"]
        for kind, count in written.items():
            there = 0 if files[kind] is None else len(files[kind])
            if there < count and not disk_faults and life.exit in (KILLED, POWER_CUT):
                found.append(f"power: run {name}: {there} {kind}, though {count} had been written long before the end")
        found += self._description(name, directory, life, disk_faults)
        if pairs is None or singles is None or found:
            return found
        extra = not_in(singles, arrived)
        if extra:
            found.append(f"exact: run {name}: {extra} of {len(singles)} singles are not what arrived")
        found += self._complete(name, directory, singles, arrived, story)
        expected = reference.prompts(singles)
        got = [(int(p["time"]), int(p["dt"]), int(p["crystal_a"]), int(p["crystal_b"])) for p in pairs if p["kind"] == 0]
        if cut or life.exit == KILLED or disk_faults:
            # Each file ends where it ends: what both hold must agree.
            end = min([singles["time"][-1] if len(singles) else 0, got[-1][0] if got else 0])
            expected, got = ([p for p in pairs if p[0] + 2 * reference.WINDOW_TICKS < end] for pairs in (expected, got))
        if sorted(expected) != sorted(got):
            lacks, has = collections.Counter(expected) - collections.Counter(got), collections.Counter(got) - collections.Counter(expected)
            found.append(f"prompts: run {name}: lacks {sorted(lacks.elements())[:3]}, has {sorted(has.elements())[:3]} "
                         f"({len(got)} for {len(expected)})")
        return found

    def _complete(self, name, directory, singles, arrived, story):
        """Without late frames and time jumps every hit of the run is there. Where times are wrong, they do not tell to which run a
        hit belongs."""
        try:
            with open(os.path.join(directory, "run.json"), encoding="utf-8") as file:
                run = json.load(file)
        except (OSError, ValueError):
            return []
        # A run that starts before detector time is known lacks hits that arrived before it, though its coverage may include them.
        if run["state"] != "complete" or run["taken"]["start_ticks"] == 0 or any(e.what in ("reset", "step_us", "corrupt") for e in story.events):
            return []
        frames, datagrams = run["ledger"]["frames"], run["ledger"]["datagrams"]
        if any([frames["late"], frames["time_jump"], datagrams["dropped_no_buffer"], datagrams["dropped_kernel"], datagrams["stray"], datagrams["malformed"],
                datagrams["repeated"]]):
            return []
        inside = np.zeros(len(arrived), bool)
        for start, stop in run["coverage"]["intervals"]:
            inside |= (arrived["time"] >= start) & (arrived["time"] < stop)
        missing = not_in(arrived[inside], singles)
        return [f"complete: run {name}: {missing} of {inside.sum()} hits are missing, and no counter says so"] if missing else []

    def _description(self, name, directory, life, disk_faults):
        try:
            with open(os.path.join(directory, "run.json"), encoding="utf-8") as file:
                run = json.load(file)
        except (OSError, ValueError) as error:
            return [] if life.exit != 0 or disk_faults else [f"files: run {name}: run.json: {error}"]
        if run["state"] == "running":
            return [] if life.exit != 0 or disk_faults else [f"files: run {name} is still running in run.json"]
        found = [f"ledger: run {name}: {text}" for text in self.identities.broken(run["ledger"])]
        told, final = written_before(life, name, life.end_ns), run["ledger"]["pairs"]["written"]
        if told.get("coincidences", 0) > final:
            found.append(f"ledger: run {name}: the status told of {told['coincidences']} coincidences, the run has {final}")
        return found

    # Health

    def _health(self, life, story):
        found = []
        if not disturbed(story, life.begin_ns, life.end_ns, "disk_full", "disk_fails", "disk_slow"):
            for at, status in statuses(life):
                found += [f"health: at {at / S:.3f} s: {reason['code']}: {reason['message']}"
                          for reason in status["health"]["reasons"] if reason["code"] in NEVER]
            found = found[:1]
        seen = [(at, {reason["code"] for reason in status["health"]["reasons"]}) for at, status in statuses(life)]
        for at, text in life.all("story"):
            what, *words = text.split()
            codes = expected_codes(what, words)
            # Faults that act at the same time may hide each other.
            alone = not any(e.what != "request" and (e.ms * MS, str(e).split(" ", 1)[1]) != (at, text)
                            and e.ms * MS <= at + HEALTH_NS and e.ms * MS + lasts_ns(e) >= at - HEALTH_NS
                            for e in story.events)
            if codes and alone and at + HEALTH_NS < life.end_ns and at > life.begin_ns + 4 * S:
                named = set().union(*(c for t, c in seen if at <= t <= at + HEALTH_NS))
                if not named & codes:
                    found.append(f"health: {text} at {at / S:.3f} s is not named within {HEALTH_NS / S:.0f} s: {sorted(named)}")
        return found


HEALTH_NS = 6 * S
# No board, stranger or operator may bring these about.
NEVER = {"pipeline_failed", "stage_stalled", "run_failed", "start_delayed", "ledger_series_incomplete"}
CLOCK_CODES = {"source_restarted", "source_jumping", "source_lagging", "source_leading", "source_stepped_back", "time_jumps",
               "late_frames", "source_clock", "sources_behind", "source_silent"}


def expected_codes(what, words):
    """Any of these names the fault; empty: it need not be named."""
    if what == "silence" and int(words[1]) >= 3000:
        return {"source_silent"}
    if what == "strangers":
        return {"unknown_source", "malformed_datagrams"}
    if what == "reset" and words[0] != "all":
        return CLOCK_CODES
    if what == "step_us" and words[0] != "all" and abs(int(words[1])) >= 1_000_000:
        return CLOCK_CODES
    if what == "lose" and words[1] in ("2", "5"):
        return {"datagrams_lost"}
    if what == "double" and words[1] in ("2", "5"):
        return {"duplicate_datagrams"}
    if what == "disk_full" and int(words[0]) >= 4000:
        return {"disk_space_low"}
    return set()


def lasts_ns(event):
    """How long a fault acts by itself."""
    if event.what == "silence":
        return event.number(1) * MS
    if event.what in ("disk_full", "disk_fails", "disk_slow"):
        return event.number(0) * MS
    return 10**18 if event.what in ("off", "drift_ppm") else 0


def disturbed(story, begin_ns, end_ns, *faults):
    """Whether one of these faults may act between two times."""
    return any(e.what in faults and e.ms * MS <= end_ns and e.ms * MS + lasts_ns(e) + 2 * S >= begin_ns for e in story.events)


def written_before(life, run, ns):
    """Records that a status said were written, at least that long before."""
    counts = {}
    for at, status in statuses(life):
        if at <= ns and status["run"] and status["run"]["id"] == run:
            counts = {"coincidences": status["ledger"]["pairs"]["written"],
                      "singles": status["ledger"]["saved_singles"]["written"]}
    return counts


def records_of_run(directory, kind, errors):
    try:
        return records_of(os.path.join(directory, f"{kind}.plm"))
    except Exception as error:  # whatever a reader says
        errors.append(f"{kind}.plm: {error}")
        return None


def not_in(these, those):
    """How many of these singles are not among those, each as often as it is there."""
    these, those = (collections.Counter(np.asarray(s)[["time", "crystal", "energy"]].tolist()) for s in (these, those))
    return sum((these - those).values())
