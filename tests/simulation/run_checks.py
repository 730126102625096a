"""One run of a simulation: its ledger, its files, and its records against what arrived."""

import collections
import json
import os
import re
import warnings

import numpy as np
from petacq.errors import IncompleteWarning
from petacq.plm import PlmFile

import ended_run
import reference
import run_promises
from disturbance import disturbed
from play import KILLED, POWER_CUT, SYNC_INTERVAL_MS
from units import MS

# From handing a record over to having it on the disk: a sync may just have begun, and the one after it takes its time.
SYNC_SLACK_NS = 500 * MS
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


def records_of(path):
    """Records up to the last whole block; None without a file."""
    if not os.path.exists(path):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IncompleteWarning)
        file = PlmFile(path)
        parts = list(file.blocks(verify=True))
    return np.concatenate(parts) if parts else np.empty(0, file.dtype)


def keys(singles):
    """A number for each single: equal ones have the same, and others, but for one in 2^64, have not."""
    energy, odd = np.ascontiguousarray(singles["energy"]).view("u4"), np.uint64(0x9E3779B97F4A7C15)
    rest = (singles["crystal"].astype("u8") << np.uint64(32) | energy) * odd
    return (singles["time"] ^ rest ^ rest >> np.uint64(29)) * odd


def not_in(these, those):
    """How many of these singles are not among those, each as often as it is there."""
    (these, count), (those, there) = (np.unique(keys(s), return_counts=True) for s in (these, those))
    if not len(those):
        return int(count.sum())
    at = np.minimum(np.searchsorted(those, these), len(those) - 1)
    return int(np.maximum(count - np.where(those[at] == these, there[at], 0), 0).sum())


def read_description(directory):
    """run.json; None if there is none that can be read."""
    try:
        with open(os.path.join(directory, "run.json"), encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


class RunChecks:
    def __init__(self, name, directory, life, story, asked_ns):
        self.name, self.directory, self.life, self.story = name, directory, life, story
        self.description = read_description(directory)
        self.disk_faults = disturbed(story, asked_ns, life.end_ns, "disk_slow", "disk_fails", "disk_full")
        self.whole = life.exit not in (KILLED, POWER_CUT) and not self.disk_faults
        self.asked_ns = asked_ns
        self.found = []

    def failures(self, identities, arrived):
        """`arrived`: the singles of all that arrived in the life of the daemon."""
        written = self._written_before(self.life.end_ns - SYNC_INTERVAL_MS * MS - SYNC_SLACK_NS)
        if not os.path.isdir(self.directory):
            if any(written.values()):
                self._fail("power", f"it is not there, though {written} had been written")
            return self.found
        files = {kind: self._records(kind, bool(written.get(kind))) for kind in ("coincidences", "singles")}
        self._check_written(files, written)
        self._check_description(identities)
        self._check_ended(files)
        if not self.found and all(records is not None for records in files.values()):
            self._check_singles(files["singles"], arrived)
            self._check_prompts(files["coincidences"], files["singles"])
        return self.found

    def _fail(self, check, what):
        self.found.append(f"{check}: run {self.name}: {what}")

    def _written_before(self, ns):
        """Records that a status until then said were written."""
        counts = {}
        for at, status in self.life.statuses:
            if at <= ns and status["run"] and status["run"]["id"] == self.name:
                counts = {"coincidences": status["ledger"]["pairs"]["written"],
                          "singles": status["ledger"]["saved_singles"]["written"]}
        return counts

    def _records(self, kind, expected):
        try:
            return records_of(os.path.join(self.directory, f"{kind}.plm"))
        except Exception as error:  # whatever a reader says
            if self.life.exit != POWER_CUT or expected:  # otherwise not even a header had to be there
                self._fail("files", f"{kind}.plm: {error}")
            return None

    def _check_written(self, files, written):
        if self.disk_faults:
            return
        for kind, count in written.items():
            there = 0 if files[kind] is None else len(files[kind])
            if there < count:
                self._fail("power", f"{there} {kind}, though {count} had been written long before the end")

    def _check_description(self, identities):
        if self.description is None or self.description["state"] == "running":
            if self.whole and self.life.exit == 0:
                self._fail("files", "run.json is not that of a run that has ended")
            return
        ledger = self.description["ledger"]
        for text in identities.broken(ledger):
            self._fail("ledger", text)
        told, final = self._written_before(self.life.end_ns).get("coincidences", 0), ledger["pairs"]["written"]
        if told > final:
            self._fail("ledger", f"the status told of {told} coincidences, the run has {final}")

    def _check_ended(self, files):
        ended = self.description is not None and self.description["state"] != "running"
        texts = list(ended_run.failures(self.directory, self.description, files, self.whole)) if ended else []
        for text in [*texts, *run_promises.failures(self)]:
            check, what = text.split(": ", 1)
            self._fail(check, what)

    def _check_singles(self, singles, arrived):
        extra = not_in(singles, arrived)
        if extra:
            self._fail("exact", f"{extra} of {len(singles)} singles are not what arrived")
        if not self._counts_all():
            return
        inside = np.zeros(len(arrived), bool)
        for start, stop in self.description["coverage"]["intervals"]:
            inside |= (arrived["time"] >= start) & (arrived["time"] < stop)
        missing = not_in(arrived[inside], singles)
        if missing:
            self._fail("complete", f"{missing} of {inside.sum()} hits are missing, and no counter says so")

    def _counts_all(self):
        """Whether each hit that arrived in its time is in the run."""
        run = self.description
        if run is None or run["state"] != "complete":
            return False
        # Times that are wrong do not tell to which run a hit belongs.
        if any(event.what in ("reset", "step_us", "corrupt") for event in self.story.events):
            return False
        frames, datagrams = run["ledger"]["frames"], run["ledger"]["datagrams"]
        without = [frames["late"], frames["time_jump"]]
        without += [datagrams[name] for name in ("dropped_no_buffer", "dropped_kernel", "stray", "malformed", "repeated")]
        return not any(without)

    def _check_prompts(self, pairs, singles):
        expected = reference.prompts(singles)
        got = pairs[pairs["kind"] == 0][["time", "dt", "crystal_a", "crystal_b"]].tolist()
        if not self.whole:
            # Each file ends where it ends: what both hold must agree.
            end = min(singles["time"][-1] if len(singles) else 0, got[-1][0] if got else 0)
            expected, got = ([p for p in some if p[0] + 2 * reference.WINDOW_TICKS < end] for some in (expected, got))
        if expected != got:
            expected, got = collections.Counter(expected), collections.Counter(got)
            lacks, has = sorted((expected - got).elements()), sorted((got - expected).elements())
            self._fail("prompts", f"lacks {lacks[:3]}, has {has[:3]} ({got.total()} for {expected.total()})")
