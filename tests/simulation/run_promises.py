"""What a run was asked for and what was told of it must hold."""

import json

from reception_checks import CLOCK_FAULTS, SETTLED_NS, TICKS_PER_NS
from units import MS, S

# With these, a run need not begin or end where it was asked to.
NOT_QUIET = (*CLOCK_FAULTS, "off", "on", "silence", "burst", "lose", "delay", "strangers")
# From asking to the first frame, and back to what boards still held; from asking to the last frame.
START_NS, STOP_NS = (-500 * MS, 700 * MS), (-150 * MS, 700 * MS)


def failures(run):
    """`run`: a RunChecks."""
    if not run.disk_faults:
        yield from _power(run)
        yield from _times(run)
        yield from _written(run)


def _seen(run):
    return [(at, status) for at, status in run.life.statuses if status["run"] and status["run"]["id"] == run.name]


def _power(run):
    """A run whose end was told stays ended, and its run.json can always be read."""
    told = [at for at, text in run.life.all("answer") if '"ledger_closed"' in text and json.loads(text)["result"]["run"] == run.name]
    seen = [at for at, _ in _seen(run)]
    if run.description is None:
        if seen:
            yield f"power: run.json cannot be read, though a status told of the run at {seen[0] / S:.3f} s"
    elif told and run.description["state"] == "running":
        yield f"power: run.json says running, though the end of the run was told at {told[0] / S:.3f} s"
    elif len(seen) > 2 and "start_ticks" not in run.description and _seen(run)[1][1]["ledger"]["saved_singles"]["written"]:
        yield "power: run.json does not say when the data of the run began"


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
    if not START_NS[0] < start - run.asked_ns < START_NS[1]:
        yield f"times: it was asked to start at {run.asked_ns / S:.3f} s, and starts at {start / S:.3f} s"
    if reason == "duration reached":
        if abs(stop - start - asked * S) > 1:
            yield f"times: it takes {(stop - start) / S:.6f} s, {asked} s were asked for"
        return
    if life.all("terminate") and reason.startswith("daemon stopped"):
        return  # at the end of a story the boards are silent before
    stops = [at for at, text in life.all("request") if '"method":"stop"' in text and at > run.asked_ns]
    if not stops or not STOP_NS[0] < stop - min(stops) < STOP_NS[1]:
        yield f"times: it stops at {stop / S:.3f} s ({reason}), asked at {[at / S for at in stops[:1]]} s"
    elif asked is not None and min(stops) > run.asked_ns + (asked + 1) * S:
        yield f"times: it stops by request, though its {asked} s were over"


def _written(run):
    """What one status says was found is written in the next."""
    seen = _seen(run)
    for (at, before), (then, now) in zip(seen, seen[1:]):
        if then - at < 1900 * MS:
            continue
        pairs, singles = before["ledger"]["pairs"], before["ledger"]["saved_singles"]
        for section, found in (("pairs", pairs["prompts_found"] + pairs["delayeds_found"]), ("saved_singles", singles["found"])):
            if now["ledger"][section]["written"] < found:
                yield f"written: {section}: {found} found at {at / S:.3f} s, {now['ledger'][section]['written']} written at {then / S:.3f} s"
                return
