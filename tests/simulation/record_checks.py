"""The records of one run of a simulation against what arrived."""

import collections
import functools

import numpy as np

import reference
import search
from arrivals import Arrivals
from loss_checks import end_of
from play import DELAY_TICKS, GAMMA, POWER_CUT, WINDOW_TICKS
from story import DELAYEDS, GAMMAS, TICKS_PER_MS
from units import MS, S

# Datagrams that arrived so long before the end of a run have been read by then.
READ_NS = 200 * MS


def keys(records, fields):
    """A number for each record: equal ones have the same, and others, but for one pair in 2^64, have not."""
    odd, found = np.uint64(0x9E3779B97F4A7C15), np.zeros(len(records), np.uint64)
    for field in fields:
        column = np.ascontiguousarray(records[field])
        found = (found ^ column.view(f"u{column.itemsize}")) * odd
        found ^= found >> np.uint64(29)
    return found


def not_in(these, those):
    """How many of these records are not among those, each as often as it is there."""
    fields = these.dtype.names
    (these, count), (those, there) = (np.unique(keys(records, fields), return_counts=True) for records in (these, those))
    if not len(those):
        return int(count.sum())
    at = np.minimum(np.searchsorted(those, these), len(those) - 1)
    return int(np.maximum(count - np.where(those[at] == these, there[at], 0), 0).sum())


def same(these, those, fields):
    """Whether they have the same records, in any order."""
    if len(these) != len(those):
        return False
    these, those = ([some[name][order] for name in fields] for some in (these, those)
                    for order in [np.lexsort([some[name] for name in reversed(fields)])])
    return all(np.array_equal(*columns) for columns in zip(these, those))


class Arrived:
    """What reached the sockets in one life of the daemon. `converters`: by the SHA-256 of their calibrations."""

    def __init__(self, datagrams, boards, gammas, converters):
        self.datagrams, self.boards, self.gammas, self.converters = datagrams, boards, gammas, converters
        self.admitted = [(at, d) for at, d in datagrams if reference.well_formed(d) and reference.source(d) < boards]
        self._singles = {}

    @functools.cached_property
    def frames(self):
        return reference.Frames(d for _, d in self.admitted)

    @functools.cached_property
    def arrivals(self):
        return Arrivals(self.admitted)

    @functools.cached_property
    def ends(self):
        """When the datagrams with frames arrived, and the time of the last frame of each."""
        of = [(at, d[-14:-6]) for at, d in self.admitted if len(d) > 16]
        return np.array([at for at, _ in of], "i8"), np.frombuffer(b"".join(last for _, last in of), ">u8")

    @functools.cached_property
    def tags(self):
        return reference.tags(self.frames)

    def singles(self, calibration):
        if calibration not in self._singles:
            self._singles[calibration] = self.converters[calibration].singles(self.frames, self.gammas)
        return self._singles[calibration]


class RecordChecks:
    """`run`: RunChecks. `files`: its records by kind; no tags: there is no such file."""

    def __init__(self, run, files, packets, arrived):
        self.run, self.files, self.packets, self.arrived = run, files, packets, arrived
        self.description, self.story = run.description, run.story

    def check(self):
        if self.description is None or self.description["calibration_sha256"] not in self.arrived.converters:
            return  # by which calibration is not known, or checked elsewhere
        arrived = self.arrived.singles(self.description["calibration_sha256"])
        self._check_arrived("hits", self.files["singles"], arrived)
        if self.files["tags"] is not None:
            self._check_arrived("tags", self.files["tags"], self.arrived.tags)
        self._check_interval()
        found = search.pairs(self.files["singles"], DELAYEDS[self.story.settings["delayeds"]])
        margin = 2 * WINDOW_TICKS + DELAY_TICKS
        self._check_found("pairs", self.files["coincidences"], found, margin)
        policy = GAMMAS[self.story.settings["gammas"]]
        if policy:
            found = search.triples(self.files["singles"], found, policy)
            margin += GAMMA["delay_ticks"] + GAMMA["after_ticks"]
            self._check_found("triples", self.files["triples"], found, margin)
        if self.packets is not None:
            self._check_capture()

    def _check_arrived(self, what, records, arrived):
        times = records["time"]
        near = (arrived["time"] >= times.min(initial=2**64 - 1)) & (arrived["time"] <= times.max(initial=0))
        extra = not_in(records[list(arrived.dtype.names)], arrived[near])
        if extra:
            self.run.fail("exact", f"{extra} of {len(records)} {what} are not what arrived")
        if not self._counts_all():
            return
        inside = np.zeros(len(arrived), bool)
        # What was missing before the run may never come: it is lost before it, whatever its time.
        overtaken = 5 * self.story.settings["send_ms"] * TICKS_PER_MS if self._delayed() else 0
        for start, stop in self.description["coverage"]["intervals"]:
            start += overtaken
            stop -= self._in_doubt()
            inside |= (arrived["time"] >= start) & (arrived["time"] < stop)
        missing = not_in(arrived[inside], records)
        if missing:
            self.run.fail("complete", f"{missing} of {inside.sum()} {what} are missing, and no counter says so")

    def _in_doubt(self):
        """Ticks at the end of the run. What the kernel dropped in them is lost in the run; who dropped it is known only afterwards."""
        end = end_of(self.run)
        if not self.description["ledger"]["datagrams"]["lost"] or end is None or not self.run.life.drops_at(*end):
            return 0
        return (end[1] - end[0] + S) // MS * TICKS_PER_MS

    def _delayed(self):
        return any(event.what == "delay" for event in self.story.events)

    def _counts_all(self):
        """Whether each hit that arrived in its time is in the run."""
        if self.description["state"] != "complete":
            return False
        # Times that are wrong do not tell to which run a hit belongs.
        if any(event.what in ("reset", "step_us", "corrupt") for event in self.story.events):
            return False
        # What the kernel dropped before the run is in no ledger of it, whatever its time.
        if self.run.life.drops_at(self.run.asked_ns):
            return False
        ledger = self.description["ledger"]
        # What is lost at the end of a run may arrive after it.
        if ledger["datagrams"]["lost"] and self._delayed():
            return False
        without = [ledger[group][name] for group in ("frames", "tags") for name in ("late", "time_jump")]
        without += [ledger["datagrams"][name] for name in ("dropped_no_buffer", "dropped_kernel", "stray", "malformed", "repeated")]
        return not any(without)

    def _check_interval(self):
        """The records lie in the times that the run covers, these in those that it took, and these in the ones that were asked for."""
        if not self.run.ended:
            return
        taken, asked = self.description["taken"], self.description["asked"]
        covered = self.description["coverage"]["intervals"] or [[0, 0]]
        if covered[-1][1] and not taken["start_ticks"] <= covered[0][0] <= covered[-1][1] <= taken["stop_ticks"]:
            self.run.fail("interval", f"covers {covered}, took {taken}")
        for kind, records in self.files.items():
            if records is not None and len(records):
                first, last = int(records["time"].min()), int(records["time"].max())
                if first < covered[0][0] or last >= covered[-1][1]:
                    self.run.fail("interval", f"{kind} from {first} to {last}, the run covers {covered}")
        if any(event.what in ("reset", "step_us") for event in self.story.events):
            return  # time started again
        start, stop = asked["start_ticks"], asked["stop_ticks"]
        if start is not None and taken["start_ticks"] not in (start, max(start, covered[0][0])) or stop is not None and taken["stop_ticks"] > stop:
            self.run.fail("interval", f"asked {asked}, took {taken}")

    def _check_found(self, what, got, expected, margin):
        if not self.run.whole:
            # Each file ends where it ends: what both hold must agree.
            singles = self.files["singles"]["time"]
            end = min(int(times[-1]) if len(times) else 0 for times in (singles, got["time"]))
            expected, got = (some[some["time"].astype("i8") + margin < end] for some in (expected, got))
        fields = list(expected.dtype.names)
        if not same(expected, got, fields):
            expected, got = (collections.Counter(some[fields].tolist()) for some in (expected, got))
            lacks, has = sorted((expected - got).elements()), sorted((got - expected).elements())
            self.run.fail(what, f"lacks {lacks[:3]}, has {has[:3]} ({got.total()} for {expected.total()})")

    def _check_capture(self):
        """It holds what arrived, but for unknown sources, and all of it while the run was in progress."""
        left = collections.Counter(d for _, d in self.arrived.datagrams)
        left.subtract(self.packets)
        extra = sum(-count for count in left.values() if count < 0)
        # A packet that was not synced may be damaged by a power cut, and has no checksum.
        if extra and (self.run.whole or self.run.life.exit != POWER_CUT):
            self.run.fail("capture", f"{extra} of {len(self.packets)} datagrams are not what arrived")
        if not self.run.whole or self.description["state"] != "complete":
            return
        told, dropped = self.description["capture"], self.description["ledger"]["datagrams"]
        if told["datagrams_written"] != len(self.packets):
            self.run.fail("capture", f"{len(self.packets)} datagrams, run.json says {told['datagrams_written']}")
        # It began before the run counted.
        counted = dropped["received"] + dropped["in_flight_at_start"] - dropped["in_flight_at_end"] - dropped["unknown_source"]
        counted -= dropped["malformed"]  # the receivers count them at once
        if told["datagrams_written"] + told["datagrams_dropped"] < counted - dropped["dropped_no_buffer"]:
            self.run.fail("capture", f"{told}, the ledger of the run has {counted} datagrams")
        # The status tells of the run before the acquisition has it.
        since = self.run.start_answered_ns
        times = [at for at, status in self.run.statuses if status["run"]["capture"] is not None and since is not None and at >= since]
        if told["datagrams_dropped"] or dropped["dropped_kernel"] or dropped["dropped_no_buffer"] or not times:
            return
        arrived = collections.Counter(d for at, d in self.arrived.datagrams if times[0] + READ_NS <= at <= times[-1] - READ_NS
                                      and not (reference.well_formed(d) and reference.source(d) >= self.arrived.boards))
        missing = (arrived - collections.Counter(self.packets)).total()
        if missing:
            self.run.fail("capture", f"{missing} datagrams of {arrived.total()} are missing, and no counter says so")
