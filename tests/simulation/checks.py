"""What must hold after a simulation. Each failure is a text that begins with the name of the check: `NAME: what does not hold`."""

import collections
import os

from petacq.calibration import Calibration
from petacq.scanner import Scanner

import calibration
import health
import reception_checks
import recovery
import reference
from disturbance import disturbed
from play import KILLED, POWER_CUT, SCANNER, STANDSTILL
from record_checks import Arrived
from run_checks import Identities, RunChecks, read_description
from units import MS, S

CONNECT_NS = 5 * S
# Exit status after a second signal, which does not wait.
LEFT_AT_ONCE = 74
# Twice what it needs.
MAX_MEMORY_KB = 100_000
# A start waits for the watermark, and a stop for the disk.
ANSWER_NS, STATUS_NS = 30 * S, 2 * S
GROWING = [("datagrams", "received"), ("datagrams", "accepted"), ("datagrams", "dropped_kernel"), ("frames", "received"),
           ("frames", "accepted"), ("singles", "decided"), ("singles", "prompts"), ("tags", "received"), ("gammas", "triples")]


def _since_start(life, run):
    """What the operator asked for after the last start of this run."""
    requests = life.all("request")
    starts = [index for index, (_, text) in enumerate(requests) if f'"run":"{run}"' in text]
    return requests[starts[-1] + 1:] if starts else []


def _starts(life, run):
    """The ids of the requests that asked for it."""
    return [life.document(text)["id"] for _, text in life.all("request") if f'"run":"{run}"' in text]


class Checks:
    def __init__(self, bench):
        self.identities = Identities(bench.source)
        self.boards = len(SCANNER["sources"])
        self.petlm = bench.petlm
        calibrations = [Calibration.load(file, Scanner.load(bench.scanner)) for file in bench.calibrations]
        self.calibrations = [c.sha256 for c in calibrations]
        self.converters = {c.sha256: reference.Converter(SCANNER, c) for c in calibrations}

    def failures(self, story, outcome):
        found = []
        for number, life in enumerate(outcome.lives):
            datagrams = list(reference.arrivals(os.path.join(outcome.directory, "arrived"), number))
            arrived = Arrived(datagrams, self.boards, story.settings["gammas"] != 0, self.converters)
            found += self._ends(life, outcome.lives[number - 1] if number else None, story, outcome.directory)
            found += self._answers(life, story)
            found += self._totals(life)
            found += self._told(life)
            found += self._reception(life, datagrams)
            found += health.failures(life, story, arrived.arrivals)
            found += reception_checks.failures(life, story, arrived.arrivals)
            found += self._runs(life, arrived, story, outcome)
        return found

    def _ends(self, life, before, story, directory):
        if life.exit == STANDSTILL:
            return [f"standstill: the threads stand still, or the daemon does not stop: {life.why} {life.log[-300:]}"]
        if life.exit == LEFT_AT_ONCE and sum(text == "terminate" for _, text in life.all("story")) > 1:
            return []
        if life.exit not in (0, KILLED, POWER_CUT):
            if not disturbed(story, life.begin_ns, life.end_ns, "disk_full", "disk_fails", "disk_fails_to_sync"):
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
        last, first = before.statuses[-1:], life.statuses[:1]
        if not last or not first or last[0][1]["run"] is None:
            return []
        run = last[0][1]["run"]["id"]
        description = read_description(os.path.join(directory, "data", run))
        if description is not None and description["state"] != "running":
            return []  # it had ended since
        began = any(status["run"] and status["run"]["id"] == run and status["state"] == "running" and not status["run"]["waiting"]
                    for _, status in before.statuses)
        if not began and any('"method":"stop"' in text for _, text in _since_start(before, run)):
            return []  # it was stopped before its start: nothing is left of it
        if not began and any(f'"id":{number},' in text and '"error"' in text for _, text in before.all("answer") for number in _starts(before, run)):
            return []  # its start had passed, as the answer said
        known = {known["id"] for _, status in life.statuses for known in status["interrupted"]["runs"]}
        return [] if run in known else [f"interrupted: run {run} is not among {sorted(known)} after the restart"]

    @staticmethod
    def _answers(life, story):
        """Each request is answered, once."""
        if disturbed(story, life.begin_ns, life.end_ns, "disk_slow") or life.exit == STANDSTILL:
            return []
        times = collections.defaultdict(collections.deque)
        for at, text in life.all("answer"):
            answer = life.document(text)
            if "id" in answer:
                times[answer["id"]].append(at)
        for at, text in life.all("request"):
            name = life.document(text)["id"]
            within = STATUS_NS if name == "status" else ANSWER_NS
            if times[name] and at <= times[name][0] <= at + within:
                times[name].popleft()
            elif at + within < life.end_ns:
                return [f"answers: none within {within / S:.0f} s to {text[:80]} of {at / S:.3f} s"]
        return []

    @staticmethod
    def _totals(life):
        """What was counted since the daemon started does not become less, but for what was lost and arrives late."""
        before = {}
        for at, status in life.statuses:
            total = status["total"]
            now = {f"{group}.{name}": total[group][name] for group, name in GROWING}
            less = [name for name, count in before.items() if now[name] < count]
            if less:
                return [f"ledger: {less} of the total became less at {at / S:.3f} s"]
            before = now
        return []

    def _told(self, life):
        """The ledger that a status tells closes, too."""
        for at, status in life.statuses:
            for ledger in (status["ledger"], status["total"]):
                for text in self.identities.broken(ledger):
                    return [f"ledger: in the status of {at / S:.3f} s: {text}"]
        return []

    def _reception(self, life, datagrams):
        if life.exit != 0 or not life.all("terminate"):
            return []
        last = life.statuses[-1:]
        if not last or any(at > last[0][0] - 300 * MS for at, _ in datagrams):
            return []
        counted = last[0][1]["total"]["datagrams"]
        taken = counted["received"] + counted["dropped_kernel"] + counted["discarded_backlog"]
        if taken != len(datagrams):
            return [f"reception: {len(datagrams)} datagrams arrived; received {counted['received']}, "
                    f"dropped by the kernel {counted['dropped_kernel']}"]
        return []

    def _runs(self, life, arrived, story, outcome):
        found = []
        for at, text in life.all("request"):
            call = life.document(text)
            if call["method"] == "start":
                name = call["params"]["run"]
                run = RunChecks(name, os.path.join(outcome.directory, "data", name), life, story, at)
                found += run.failures(self.identities, arrived)
                found += calibration.failures(run, life, at, self.calibrations)
                found += recovery.failures(run, self.petlm)
        return found
