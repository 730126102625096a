"""What a run was asked for and what was told of it must hold."""

from play import POWER_CUT
from disturbance import lasts_ns
from reception_checks import CLOCK_FAULTS, SETTLED_NS, TICKS_PER_NS
from units import MS, S

# With these, a run need not begin or end where it was asked to.
NOT_QUIET = (*CLOCK_FAULTS, "off", "on", "silence", "burst", "lose", "delay", "strangers")
# From asking to the first frame, and back to what boards still held; from asking to the last frame.
# A reset is known when all boards agree on it.
RESET_NS = 4 * S
START_NS, STOP_NS = (-500 * MS, 700 * MS), (-150 * MS, 700 * MS)


def failures(run, files, arrived):
    """`run`: a RunChecks. `files`: its records by kind. `arrived`: of the life of the daemon."""
    yield from _sync(run)
    yield from _reset(run)
    yield from _last(run, files)
    if not run.disk_faults:
        yield from _power(run)
        yield from _times(run)
        yield from _stop(run, arrived)
        yield from _written(run)
        yield from _live(run)


def _power(run):
    """run.json can always be read, and says when the data began."""
    seen = [at for at, _ in run.statuses]
    if run.description is None:
        if seen:
            yield f"power: run.json cannot be read, though a status told of the run at {seen[0] / S:.3f} s"
    elif len(seen) > 2 and "start_ticks" not in run.description and run.statuses[1][1]["ledger"]["saved_singles"]["written"]:
        yield "power: run.json does not say when the data of the run began"


def _sync(run):
    """A run is not complete if a sync of its records has failed."""
    failed = [path for _, path in run.life.all("sync_failed") if f"/{run.name}/" in path and path.endswith(".plm")]
    if failed and run.description is not None and run.description["state"] == "complete":
        yield f"sync: the run is complete, though a sync of {failed[0]} failed"


def _reset(run):
    """A run ends when all boards are reset."""
    if any(event.what == "off" for event in run.story.events):
        return
    for event in run.story.events:
        at = event.ms * MS
        near = [other for other in run.story.events if other != event and other.what not in ("request", "calibration")
                and other.ms * MS + lasts_ns(other) > at - SETTLED_NS and other.ms * MS < at + RESET_NS]
        if event.what != "reset" or event.words[0] != "all" or near or at < run.life.begin_ns + SETTLED_NS:
            continue
        before = [status for then, status in run.statuses if then < at]
        after = [then for then, _ in run.statuses if then > at + RESET_NS]
        if before and after and before[-1]["ledger"]["saved_singles"]["found"]:
            yield f"reset: it goes on at {after[0] / S:.3f} s, all boards were reset at {at / S:.3f} s"


def _last(run, files):
    """After the end of a run the status knows what is in its files, also if the disk failed."""
    after = [status for _, status in run.life.statuses if status["run"] is None and status["last_run"] and status["last_run"]["id"] == run.name]
    if run.life.exit == POWER_CUT or not after:
        return
    for kind, section in (("coincidences", "pairs"), ("singles", "saved_singles")):
        counted = after[0]["ledger"][section]
        if files[kind] is not None and (counted["written"] != len(files[kind]) or counted["in_queue"]):
            yield f"files: {len(files[kind])} {kind} after the end of the run, and the status says {counted}"


def _live(run):
    """The share of the data that arrived is less where boards were silent, or datagrams lost."""
    description, events = run.description, run.story.events
    if description is None or description["state"] != "complete" or not description["coverage"]["intervals"]:
        return
    live, counted = description["coverage"]["loss"]["live"], description["ledger"]["datagrams"]
    # What is lost of a burst is many datagrams and little time.
    if live is None or any(event.what in (*CLOCK_FAULTS, "burst", "flood") for event in events):
        return
    start, stop = (ticks / TICKS_PER_NS for ticks in (description["coverage"]["intervals"][0][0], description["coverage"]["intervals"][-1][1]))
    silent = sum(event.number(1) * MS for event in events if event.what == "silence" and event.number(1) >= 3000
                 and start + S < event.ms * MS and event.ms * MS + event.number(1) * MS < stop - S)
    silent /= (stop - start) * run.story.settings["boards"]
    lost = counted["lost"] / (counted["lost"] + counted["received"]) if 20 < counted["lost"] < 2**63 else 0
    # Each second weighs the same, however many datagrams it had, so that the share of few datagrams is uncertain.
    certain = 0.75 if counted["lost"] >= 100 else 0.5
    if live > 1 - 0.75 * silent - certain * lost:
        yield f"live: {live}, though {silent + lost:.3f} of the data did not arrive"


def _times(run):
    """Start, stop and duration are those that were asked for."""
    description, story, life = run.description, run.story, run.life
    if description is None or description["state"] != "complete" or any(event.what in NOT_QUIET for event in story.events):
        return
    intervals = description["coverage"]["intervals"]
    if not intervals or run.asked_ns < life.begin_ns + SETTLED_NS:
        return
    start, stop = intervals[0][0] / TICKS_PER_NS, intervals[-1][1] / TICKS_PER_NS
    asked, reason = description["asked"]["duration_s"], description["stop_reason"]
    if description["asked"]["start_ticks"] is not None or description["asked"]["stop_ticks"] is not None:
        return
    if not START_NS[0] < start - run.asked_ns < START_NS[1]:
        yield f"times: it was asked to start at {run.asked_ns / S:.3f} s, and starts at {start / S:.3f} s"
    if reason == "duration reached":
        if asked is None or abs(stop - start - asked * S) > 1:
            yield f"times: it takes {(stop - start) / S:.6f} s, {asked} s were asked for"
        return
    if life.all("terminate") and reason.startswith("daemon stopped"):
        return  # at the end of a story the boards are silent before
    if run.stop_asked_ns is None or not STOP_NS[0] < stop - run.stop_asked_ns < STOP_NS[1]:
        yield f"times: it stops at {stop / S:.3f} s ({reason}), asked at {(run.stop_asked_ns or 0) / S} s"
    elif asked is not None and run.stop_asked_ns > run.asked_ns + (asked + 1) * S:
        yield f"times: it stops by request, though its {asked} s were over"


def _stop(run, arrived):
    """A run that is stopped takes everything that had arrived."""
    description = run.description
    if description is None or description.get("stop_reason") != "stopped by operator" or run.stop_asked_ns is None:
        return
    if description["asked"]["stop_ticks"] is not None:
        return
    if any(event.what in CLOCK_FAULTS or event.what == "burst" for event in run.story.events):
        return
    # Before detector time is known, what had arrived by the answer is of the time before the run.
    if not description["ledger"]["datagrams"]["received"]:
        return
    at, last = arrived.ends
    arrived_in_it = last[(at > run.asked_ns) & (at <= run.stop_asked_ns)]
    newest = arrived_in_it.max(initial=0)
    if len(arrived_in_it) and newest >= description["taken"]["stop_ticks"]:
        yield f"times: it stops at {description['taken']['stop_ticks']} ticks, a frame of {newest} had arrived when it was asked to stop"


def _written(run):
    """What one status says was found is written in the next."""
    seen = run.statuses
    for (at, before), (then, now) in zip(seen, seen[1:]):
        if then - at < 1900 * MS:
            continue
        pairs, singles = before["ledger"]["pairs"], before["ledger"]["saved_singles"]
        for section, found in (("pairs", pairs["prompts_found"] + pairs["delayeds_found"]), ("saved_singles", singles["found"])):
            if now["ledger"][section]["written"] < found:
                yield f"written: {section}: {found} found at {at / S:.3f} s, {now['ledger'][section]['written']} written at {then / S:.3f} s"
                return
