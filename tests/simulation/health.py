"""Health names each fault within its time, and nothing that did not happen."""

from disturbance import disturbed, lasts_ns
from reception_checks import MAX_DISORDER
from units import MS, S

HEALTH_NS = 6 * S
# By then a fault that is over is not named any more.
GONE_NS = 10 * S
# After its start a daemon first has to hear all boards.
SETTLED_NS = 4 * S
# No board, stranger or operator may bring these about.
NEVER = {"pipeline_failed", "stage_stalled", "run_failed", "start_delayed", "ledger_series_incomplete"}
CLOCK_CODES = {"source_restarted", "source_jumping", "source_lagging", "source_leading", "source_stepped_back", "time_jumps",
               "late_frames", "source_clock", "sources_behind", "source_silent"}
# So many datagrams in a row confirm a step back of a clock: the configuration's default.
CONFIRMATIONS = 3
# By then what a board has reached is known.
STEADY_MS = 2000
# What is named when datagrams are dropped, or the cause that hides it.
DROPS = {"kernel_drops", "no_free_batch", "stage_stalled", "disk_slow", "seconds_slow"}


def expected_codes(event, life, arrivals):
    """Any of these names the fault; empty: it need not be named."""
    what, words = event.what, event.words
    if what == "silence" and int(words[1]) >= 3000:
        return {"source_silent"}
    if what == "strangers":
        return {"unknown_source", "malformed_datagrams"}
    if what == "reset" and words[0] != "all":
        return {"source_restarted"}
    if what == "step_us" and words[0] != "all" and abs(int(words[1])) >= 1_000_000:
        return CLOCK_CODES
    if what == "step_us" and words[0] != "all" and int(words[1]) == -500_000:
        return {"source_stepped_back"} if step_back_is_confirmed(event, arrivals) else {"late_frames", *out_of_place(event, life)}
    if what == "lose" and words[1] in ("2", "5"):
        return {"datagrams_lost"}
    if what == "double" and words[1] in ("2", "5"):
        return {"duplicate_datagrams"}
    if what == "disk_full" and int(words[0]) >= 4000:
        return {"disk_space_low"}
    return set()


def step_back_is_confirmed(event, arrivals):
    """Whether enough datagrams in a row lie behind what the board had reached, as time_guard.hpp has it. The clock of one that sends
    few may be past that again before (docs/how-to/alarms.md, "source_stepped_back")."""
    reached = previous = row = 0
    used = set()  # copies are not
    for i in arrivals.of(event.number(0)):
        times = int(arrivals.first[i]), int(arrivals.last[i])
        if not (event.ms - STEADY_MS) * MS < arrivals.at[i] < event.ms * MS + HEALTH_NS or times in used:
            continue
        used.add(times)
        if max(times) + MAX_DISORDER < reached:
            row, previous = row + 1, max(times)
            if row == CONFIRMATIONS:
                return True
        else:
            row, low = 0, min(times)
            # A single frame may have a wrong time.
            reached, previous = max(reached, low if arrivals.frames[i] > 1 else min(low, previous)), low
    return False


def out_of_place(event, life):
    """What names the board of a fault that was far from the others before: its frames are not used anyway."""
    before = [status for at, status in life.statuses if at < event.ms * MS]
    states = {source["state"] for source in before[-1]["sources"] if source["id"] == event.number(0)} if before else set()
    return {f"source_{state}" for state in states & {"leading", "lagging"}}


def happens_alone(event, story):
    """Faults that act at the same time may hide each other."""
    begin, end = event.ms * MS - HEALTH_NS, event.ms * MS + HEALTH_NS
    return not any(other != event and other.what not in ("request", "calibration") and other.ms * MS <= end and other.ms * MS + lasts_ns(other) >= begin
                   for other in story.events)


def unnamed_drops(life, seen):
    """Datagrams that kernel or daemon dropped are named, or what made it drop them."""
    before = 0
    for at, status in life.statuses:
        counted = status["total"]["datagrams"]
        dropped = counted["dropped_kernel"] + counted["dropped_no_buffer"]
        if dropped > before and at < life.end_ns - HEALTH_NS and not named_at(seen, at) & DROPS:
            return [f"health: {dropped - before} dropped datagrams at {at / S:.3f} s are not named within {HEALTH_NS / S:.0f} s"]
        before = dropped
    return []


def named_at(seen, ns):
    """From this time on, while health has time to name it."""
    return set().union(*(codes for t, codes in seen if ns <= t <= ns + HEALTH_NS))


def failures(life, story, arrivals):
    seen = [(at, {reason["code"] for reason in status["health"]["reasons"]}) for at, status in life.statuses]
    found = unnamed_drops(life, seen)
    if not disturbed(story, life.begin_ns, life.end_ns, "disk_full", "disk_fails", "disk_fails_to_sync", "disk_slow"):
        wrong = [(at, codes & NEVER) for at, codes in seen if codes & NEVER]
        # After a restart health still says how the last run ended.
        if disturbed(story, 0, life.end_ns, "disk_full", "disk_fails", "disk_fails_to_sync"):
            wrong = [(at, codes - {"run_failed"}) for at, codes in wrong if codes != {"run_failed"}]
        # When all clocks have stepped back, a start waits for them.
        steps = [event.ms * MS for event in story.events if event.what == "step_us" and event.words[0] == "all"]
        wrong = [(at, codes) for at, codes in wrong if codes != {"start_delayed"} or not any(step < at for step in steps)]
        found += [f"health: {sorted(codes)} at {at / S:.3f} s" for at, codes in wrong[:1]]
    for event in story.events:
        at = event.ms * MS
        if not happens_alone(event, story) or not life.begin_ns + SETTLED_NS < at < life.end_ns - HEALTH_NS:
            continue
        codes = expected_codes(event, life, arrivals)
        if not codes:
            continue
        if event.what == "strangers":
            late = {code for t, seen_then in seen if t > at + GONE_NS for code in seen_then & codes}
            if late and not any(e.what in ("strangers", "corrupt") and e != event for e in story.events):
                found.append(f"health: {event} is still named {GONE_NS / S:.0f} s later: {sorted(late)}")
        named = named_at(seen, at)
        if not named & codes:
            found.append(f"health: {event} is not named within {HEALTH_NS / S:.0f} s: {sorted(named)}")
    return found
