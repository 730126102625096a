"""What counters, watermark and answers of a daemon must be, from what arrived and was asked."""

import numpy as np

from disturbance import disturbed, lasts_ns
from units import MS, S

TICKS_PER_NS = 64
MAX_DISORDER = 10 * MS * TICKS_PER_NS  # ticks; the configuration's default, as the timeout
MAX_LAG = S * TICKS_PER_NS
MAX_JUMP_MS = 2000
TIMEOUT_NS = 500 * MS
# What moves clocks, or makes times that are wrong.
CLOCK_FAULTS = ("reset", "step_us", "corrupt", "drift_ppm")
# After these, what arrives is used as before.
HARMLESS = ("request", "drift_ppm", "lose", "double", "delay")
# After a reset so many datagrams have had numbers near each other, and it is known.
FIRST_NUMBERS = 8
# Numbers so far from each other are near (docs/design/time.md).
NEAR = 64
# A status tells of a moment shortly before it is read.
SNAPSHOT_NS = 700 * MS
SETTLED_NS = 8 * S
# So long does a board wait for the others that are expected, before detector time begins with it.
ALONE_NS = 12 * TIMEOUT_NS
INTERNAL_ERROR = -32603


def failures(life, story, arrivals):
    boards = range(story.settings["boards"])
    events = [event for event in story.events if event.ms * MS < life.end_ns]
    clocks_right = not any(event.what in CLOCK_FAULTS for event in events)
    checks = [_answers(life), _states(life, events), _works(life, events, arrivals)]
    if clocks_right:
        checks += [_watermark(life, story, arrivals, boards), _late(life, arrivals, boards)]
    if not any(event.what == "corrupt" for event in events):
        checks.append(_numbers(life, story, arrivals, boards))
    checks.append(_strays(life))
    if not any(event.what in ("reset", "step_us", "drift_ppm") for event in events):
        checks += [_clocks(life, story), _jumping(life, events)]
    return [text for check in checks for text in check]


def _answers(life):
    """No request is abandoned, unless the daemon ends."""
    ends = min((at for at, _ in life.all("terminate")), default=life.end_ns)
    for at, text in life.all("answer"):
        if at < ends and life.document(text).get("error", {}).get("code") == INTERNAL_ERROR:
            yield f"answers: {text} at {at / S:.3f} s"


def _states(life, events):
    """A run does not take long to start or to stop, and the status knows when there is none."""
    since = None
    for at, status in life.statuses:
        if status["state"] == "idle" and status["run"] is not None or status["state"] == "running" and status["run"] is None:
            yield f"states: the daemon is {status['state']} with the run {status['run']} at {at / S:.3f} s"
        if status["state"] not in ("starting", "stopping"):
            since = None
            continue
        since = since or at
        slow_until = max([event.ms * MS + lasts_ns(event) for event in events if event.what.startswith("disk")], default=0)
        if at - max(since, slow_until) > 7 * S:
            yield f"states: the daemon is {status['state']} from {since / S:.3f} to {at / S:.3f} s"
            return
    gone = {}
    for at, kind, text in life.events:
        if kind != "answer":
            continue
        answer = life.document(text)
        result = answer.get("result", {})
        if answer.get("id") == "status":
            run = result["run"] and result["run"]["id"]
            if run in gone and at > gone[run] + 10 * MS:
                yield f"states: the run {run} ended at {gone[run] / S:.3f} s and is in the status of {at / S:.3f} s"
                return
        elif "ledger_closed" in result:
            gone.setdefault(result["run"], at)


def _works(life, events, arrivals):
    """Some time after each fault, most of what arrives is used."""
    alone = {str(event.words[0]) for event in events if event.what in ("reset", "step_us") and event.words[0] != "all"}
    if len(alone) > 1 or any(event.what == "corrupt" for event in events):
        return
    starts = [at for at, text in life.all("request") if '"method":"start"' in text]
    # When each disturbance began, and when it was over.
    disturbed = [(event.ms * MS, event.ms * MS + (0 if event.what == "off" else lasts_ns(event))) for event in events if event.what not in HARMLESS]
    for (begin, before), (end, now) in zip(life.statuses, life.statuses[1:]):
        if begin < life.begin_ns + SETTLED_NS or any(since < end and until + SETTLED_NS > begin for since, until in disturbed):
            continue
        inside = (arrivals.at > begin) & (arrivals.at < end - SNAPSHOT_NS)
        # Where detector time begins anew with a run, a board that is alone waits for the others, and so do two that contradict each other.
        sending = {str(source) for source in np.unique(arrivals.source[inside])}
        if len(sending) <= 1 + len(sending & alone) and any(begin - ALONE_NS < at < end for at in starts):
            continue
        came = int(arrivals.frames[inside].sum())
        used = now["total"]["frames"]["received"] - before["total"]["frames"]["received"]
        jumps = now["total"]["frames"]["time_jump"] - before["total"]["frames"]["time_jump"]
        if came > 50 and used - jumps < 0.4 * came:
            yield f"works: of {came} frames that arrived from {begin / S:.3f} to {end / S:.3f} s, {used} were used, {jumps} as time jumps"
            return


def _progress(arrivals, boards):
    """[board][datagram] the time that each board had reached when a datagram had arrived; and when each was last heard."""
    count = len(arrivals.at)
    progress, heard, known = np.zeros((len(boards), count), np.int64), np.full((len(boards), count), -(10**18)), np.zeros((len(boards), count), bool)
    for board in boards:
        mine = arrivals.of(board)
        if not len(mine):
            continue
        first = arrivals.first[mine]
        # A single frame could be a wild one: it moves the clock no further than the datagram before.
        single = arrivals.frames[mine] == 1
        first = np.where(single, np.minimum(first, np.concatenate(([0], first[:-1]))), first)
        reached = np.maximum.accumulate(first)
        latest = np.cumsum(arrivals.source == board) - 1
        some = latest >= 0
        progress[board, some] = reached[latest[some]]
        at = arrivals.at[mine]
        # Such a frame alone does not bring back a board that was silent.
        silent = np.diff(at, prepend=-(10**18)) >= TIMEOUT_NS - 60 * MS
        heard[board, some] = np.maximum.accumulate(np.where(single & silent, -(10**18), at))[latest[some]]
        known[board] = latest >= 2
    return progress, heard, known


def _watermark(life, story, arrivals, boards):
    """It follows the slowest board that is not silent, less the disorder."""
    if not len(arrivals.at):
        return
    progress, heard, known = _progress(arrivals, boards)
    allowed = _highest_watermark(arrivals, progress, heard, known, life.end_ns)
    for at, status in life.statuses:
        ticks = status["watermark_s"] * S * TICKS_PER_NS
        now, before = np.searchsorted(arrivals.at, at, "right") - 1, np.searchsorted(arrivals.at, at - SNAPSHOT_NS, "right") - 1
        # A slow disk may hold up what reads the datagrams.
        if before < 0 or not known[:, before].all() or disturbed(story, at - SNAPSHOT_NS, at, "disk_slow"):
            continue
        if ticks > allowed[now] + 1000:
            yield f"watermark: {ticks:.0f} at {at / S:.3f} s, the slowest board allows {allowed[now]}"
            return
        # A board that has just fallen silent may hold it.
        holding = at - heard[:, now] < 4 * TIMEOUT_NS
        least = progress[holding, before].min() - MAX_DISORDER if holding.any() else 0
        if ticks < least - 1000:
            yield f"watermark: {ticks:.0f} at {at / S:.3f} s, all boards had passed {least} {SNAPSHOT_NS / S} s before"
            return


def _highest_watermark(arrivals, progress, heard, known, end_ns):
    """[datagram] how far the watermark may have come until the next datagram arrives. It never decreases: a board that was silent, or
    lagged, does not take back what the others allowed without it, and holds it again from when it is back in place."""
    until = np.append(arrivals.at[1:], end_ns)
    holds = known & (until - heard < TIMEOUT_NS - 60 * MS) & (progress > progress.max(axis=0) - MAX_LAG)
    # If none does, the present time bounds it.
    allowed = np.where(holds, progress - MAX_DISORDER, until * TICKS_PER_NS).min(axis=0)
    return np.maximum.accumulate(allowed)


def _late(life, arrivals, boards):
    """No frame is late that could not be: the watermark allowed for it."""
    if not len(arrivals.at) or not life.statuses:
        return
    # A board whose datagrams found no room seems silent, and is waited for no longer.
    if any(life.statuses[-1][1]["total"]["datagrams"][name] for name in ("dropped_kernel", "dropped_no_buffer")):
        return
    progress, heard, _ = _progress(arrivals, boards)
    # A board that has not been heard yet is waited for, too.
    waited = (arrivals.at - heard < TIMEOUT_NS - 60 * MS) | ((heard < 0) & (arrivals.at < arrivals.at[0] + TIMEOUT_NS - 60 * MS))
    threshold = np.where(waited, progress, np.int64(2**62)).min(axis=0) - MAX_DISORDER
    # As of before the datagram came.
    allowed = int(arrivals.frames[1:][arrivals.first[1:] < threshold[:-1]].sum())
    late = life.statuses[-1][1]["total"]["frames"]["late"]
    if late > allowed:
        yield f"late: {late} frames, {allowed} may be"


def _clocks(life, story):
    """Clocks that go right never jump. An overloaded daemon drops datagrams and reads those before and after the gap at one time: if the gap is longer than
    a jump, it seems to be one."""
    gap = MAX_JUMP_MS // story.settings["send_ms"]  # datagrams
    jumps = {}
    for number, (at, status) in enumerate(life.statuses):
        earlier = life.statuses[max(number - 3, 0)][1]
        dropped = _dropped(status) - _dropped(earlier)
        lost_earlier = {source["id"]: source["lost"] or 0 for source in earlier["sources"]}
        for source in status["sources"]:
            board = source["id"]
            lost = (source["lost"] or 0) - lost_earlier.get(board, 0)
            if source["clock_jumps"] > jumps.get(board, 0) and min(dropped, lost) < gap:
                yield f"clocks: board {board} has jumped {source['clock_jumps']} times at {at / S:.3f} s, and no clock has jumped"
                return
            jumps[board] = source["clock_jumps"]


def _dropped(status):
    return sum(status["total"]["datagrams"][name] for name in ("dropped_kernel", "dropped_no_buffer"))


def _jumping(life, events):
    """A wrong time now and then is over with the next datagram."""
    if any(event.what == "corrupt" and 0 < event.number(1) < 20 for event in events):
        return
    row = {}
    for at, status in life.statuses:
        jumping = {source["id"] for source in status["sources"] if source["state"] == "jumping"}
        row = {board: row.get(board, 0) + 1 for board in jumping}
        if any(count >= 4 for count in row.values()):
            yield f"clocks: {row} statuses in a row until {at / S:.3f} s call a board jumping that sends few wrong times"
            return


def _strays(life):
    """Few datagrams have a number that is far from the others."""
    for at, status in life.statuses[-1:]:
        counted = status["total"]["datagrams"]
        if counted["stray"] > 20 + counted["accepted"] / 10:
            yield f"numbers: {counted['stray']} strays among {counted['accepted']} datagrams at {at / S:.3f} s"


def _epochs(arrivals, board, resets):
    """The numbers of a board between its resets, as they came. None if it is not clear where a reset was."""
    mine = arrivals.all_source == board
    at, numbers = arrivals.all_at[mine], arrivals.number[mine]
    cuts = np.searchsorted(at, [ns for ns in resets if len(at) and ns > at[0]])
    epochs = np.split(numbers, cuts)
    # Soon after its beginning, a stream that begins again looks like one out of order.
    return None if any(len(epoch) < 200 for epoch in epochs[:-1]) else epochs


def _numbers(life, story, arrivals, boards):
    """Copies, losses and what is out of order, by the numbers of the datagrams; and nothing stays undecided."""
    last = life.statuses[-1:]
    if life.exit != 0 or not life.all("terminate") or not last or len(arrivals.all_at) and arrivals.all_at[-1] > last[0][0] - 1400 * MS:
        return
    total, sources = last[0][1]["total"], {source["id"]: source for source in last[0][1]["sources"]}
    counted = total["datagrams"]
    if counted["dropped_kernel"] or counted["dropped_no_buffer"] or counted["discarded_backlog"]:
        return
    events = [event for event in story.events if event.ms * MS < life.end_ns]
    resets = [event for event in events if event.what == "reset"]
    # One without frames may be the same as one from before a reset.
    if resets and (any(event.what == "delay" for event in events) or len(arrivals.at) < len(arrivals.all_at)):
        return
    expected = dict.fromkeys(("duplicate", "lost", "reordered", "accepted", "repeated"), 0)
    for board in boards:
        epochs = _epochs(arrivals, board, [event.ms * MS for event in resets if event.words[0] in (str(board), board, "all")])
        if epochs is None:
            return
        accepted, missing = 0, np.array([], np.int64)
        for came in epochs:
            numbers, at = np.unique(came, return_index=True)
            if not len(numbers):
                continue
            # The first after a reset may be taken for one that was missing before it.
            if np.isin(came[:FIRST_NUMBERS], missing).any():
                return
            # One that was delayed by more than this since before the daemon heard its board is a stray.
            if len(epochs) == 1 and numbers[0] + NEAR < came[0]:
                return
            missing = np.setdiff1d(np.arange(numbers[0], numbers[-1]), numbers)
            expected["duplicate"] += len(came) - len(numbers)
            expected["lost"] += int(numbers[-1] - numbers[0]) + 1 - len(numbers)
            in_order = numbers[np.argsort(at)]
            expected["reordered"] += int((in_order < np.maximum.accumulate(in_order)).sum())
            accepted += len(numbers)
        expected["accepted"] += accepted
        if sources[board]["datagrams"] != accepted:
            yield f"numbers: {sources[board]['datagrams']} datagrams of board {board}, {accepted} came"
    wrong = {name: (counted[name], count) for name, count in expected.items() if counted[name] != count}
    if wrong:
        yield f"numbers: (counted, expected): {wrong}"
    if not resets and (counted["stray"] or counted["restarted"]):
        yield f"numbers: {counted['stray']} strays, {counted['restarted']} restarts, and no board was reset"
    if any(event.what in CLOCK_FAULTS for event in events):
        return
    if total["singles"]["pending_at_end"] or total["frames"]["time_jump"]:
        yield f"numbers: {total['singles']['pending_at_end']} singles wait after the end, {total['frames']['time_jump']} frames are jumps"
