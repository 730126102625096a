"""One run of a simulation: its ledger and its files, and what of them survives a power cut."""

import json
import os
import re
import warnings

import numpy as np
from petacq.errors import IncompleteWarning
from petacq.plm import PlmFile

import ended_run
import loss_checks
import reference
import run_promises
from disturbance import disturbed
from play import KILLED, POWER_CUT, SYNC_INTERVAL_MS
from record_checks import RecordChecks
from units import MS

# What a write and a sync take, beyond the interval (docs/reference/list-mode-format.md, "Crashes and full disks").
SYNC_SLACK_NS = 50 * MS
# Where the status counts the records of a kind.
COUNTED = {"coincidences": "pairs", "singles": "saved_singles", "triples": "triples", "tags": "tags"}
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


def records_of(path, torn=False):
    """Records up to the last whole block; None without a file. `torn`: or up to the first that is not whole."""
    if not os.path.exists(path):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IncompleteWarning)
        file = PlmFile(path)
        parts = []
        try:
            for block in file.blocks(verify=True):
                parts.append(block)
        except Exception:  # whatever a reader says
            if not torn:
                raise
    return np.concatenate(parts) if parts else np.empty(0, file.dtype)


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
        self.disk_faults = disturbed(story, asked_ns, life.end_ns, "disk_slow", "disk_fails", "disk_fails_to_sync", "disk_full")
        self.ended = self.description is not None and self.description["state"] not in ("running", "interrupted")
        self.whole = (self.ended or life.exit not in (KILLED, POWER_CUT)) and not self.disk_faults
        self.kinds = [kind for kind in COUNTED if kind != "triples" or story.settings["gammas"]]
        # A run that ends while it waits for its start leaves nothing.
        self.statuses = [(at, status) for at, status in life.statuses
                         if status["run"] and status["run"]["id"] == name and not status["run"]["waiting"]]
        self.asked_ns = asked_ns
        self.start_answered_ns = self._start_answered()
        self.stop_asked_ns = self._next_stop()
        self.found = []

    def failures(self, identities, arrived):
        """`arrived`: of the life of the daemon."""
        written = self.promised()
        if not os.path.isdir(self.directory):
            if any(written.values()) or self._told_finished():
                self.fail("power", f"it is not there, though {written} had to be")
            return self.found
        files = {kind: self._records(kind, not self.disk_faults and bool(written.get(kind))) for kind in self.kinds}
        packets = self._packets(not self.disk_faults and bool(written.get("capture")))
        self._check_written({**files, "capture": packets}, written)
        self._check_description(identities)
        self._check_ended(files, arrived)
        if packets and self.life.exit == POWER_CUT and not self.ended:
            packets = packets[: written.get("capture", 0)]  # what was not synced may be there in part
        if not self.found and all(records is not None for kind, records in files.items() if kind != "tags"):
            RecordChecks(self, files, packets, arrived).check()
        for text in loss_checks.failures(self, arrived):
            self.fail(*text.split(": ", 1))
        return self.found

    def _start_answered(self):
        """When the operator was told that it has started, or waits for its start_ticks; None: never."""
        asked = next(self.life.document(text) for at, text in self.life.all("request") if at == self.asked_ns and f'"{self.name}"' in text)
        return next((at for at, text in self.life.all("answer") if at >= self.asked_ns and self.life.document(text).get("id") == asked["id"]), None)

    def _next_stop(self):
        """When the operator next asked to stop a run; None: never."""
        asked = False
        for at, text in self.life.all("request"):
            if asked and '"method":"stop"' in text:
                return at
            asked = asked or f'"run":"{self.name}"' in text
        return None

    def fail(self, check, what):
        self.found.append(f"{check}: run {self.name}: {what}")

    def promised(self):
        """What must be on the disk at the end: written an interval before it, or found two before it."""
        long_ago = self.life.end_ns - SYNC_INTERVAL_MS * MS - SYNC_SLACK_NS
        written, found = self._counted("written", until_ns=long_ago), self._counted("in_queue", until_ns=long_ago - SYNC_INTERVAL_MS * MS)
        return {kind: max(count, found.get(kind, 0)) for kind, count in written.items()}

    def _counted(self, where, until_ns):
        """Records, and datagrams of the capture, that a status until then said were written, or also those that waited to be."""
        counts = {}
        for at, status in self.statuses:
            if at <= until_ns:
                sections = {kind: status["ledger"][COUNTED[kind]] for kind in self.kinds}
                counts |= {kind: s["written"] + (s["in_queue"] if where == "in_queue" else 0) for kind, s in sections.items()}
                if status["run"]["capture"]:
                    counts["capture"] = status["run"]["capture"]["datagrams_written"]
        return counts

    def _told_finished(self):
        """Whether the daemon said that the run is on disk, whole."""
        answers = [self.life.document(text).get("result") for _, text in self.life.all("answer") if '"ledger_closed"' in text]
        return any(a["run"] == self.name and a["failure"] is None and a["began"] for a in answers)

    def _records(self, kind, expected):
        path = os.path.join(self.directory, f"{kind}.plm")
        if self.life.exit == KILLED and not expected and os.path.exists(path) and not os.path.getsize(path):
            return None  # it had just been made
        try:
            torn = self.life.exit == POWER_CUT and not self.ended
            return records_of(os.path.join(self.directory, f"{kind}.plm"), torn)
        except Exception as error:  # whatever a reader says
            if self.life.exit != POWER_CUT or expected:  # otherwise not even a header had to be there
                self.fail("files", f"{kind}.plm: {error}")
            return None

    def _packets(self, expected):
        path = os.path.join(self.directory, "raw.pcap")
        if os.path.exists(path):
            return reference.packets(path)
        if self.story.settings["capture"] and (self.whole or expected):
            self.fail("files", "raw.pcap is not there")
        return None

    def _check_written(self, files, written):
        if self.disk_faults:
            return
        for kind, count in written.items():
            there = 0 if files[kind] is None else len(files[kind])
            if there < count:
                self.fail("power", f"{there} {kind}, though {count} had to be on the disk")

    def _check_ended(self, files, arrived):
        undisturbed = self.whole and self.life.exit == 0
        unsynced = self.life.exit == POWER_CUT and self.ended and ": sync failed: " in self.description["stop_reason"]
        texts = list(ended_run.failures(self.directory, self.description, files, undisturbed, unsynced)) if self.ended else []
        for text in [*texts, *run_promises.failures(self, files, arrived)]:
            check, what = text.split(": ", 1)
            self.fail(check, what)

    def _check_description(self, identities):
        if not self.ended:
            if self._told_finished():
                self.fail("power", "run.json is not that of a run that has ended, though the daemon said so")
            elif self.whole and self.life.exit == 0:
                self.fail("files", "run.json is not that of a run that has ended")
            return
        ledger = self.description["ledger"]
        for text in identities.broken(ledger):
            self.fail("ledger", text)
        told = self._counted("written", until_ns=self.life.end_ns)
        for kind in self.kinds:
            final = ledger[COUNTED[kind]]["written"]
            if told.get(kind, 0) > final:
                self.fail("ledger", f"the status told of {told[kind]} {kind}, the run has {final}")
        names = ["ledger.csv", "histograms.json"] + (["spectra.h5"] if self.story.settings["spectra"] else [])
        missing = [name for name in names if not os.path.exists(os.path.join(self.directory, name))]
        if missing and not self.disk_faults:
            self.fail("files", f"{missing} are not there after the end of the run")
