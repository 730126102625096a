"""What a run says was lost in it, from the numbers of the datagrams that arrived."""

import numpy as np

from play import SETTLE_NS
from units import MS

# A datagram is read so long after it has arrived, at most.
READ_NS = 200 * MS
# With these, numbers do not say what was lost.
UNCLEAR = ("reset", "corrupt", "strangers")


def failures(run, arrived):
    """`run`: a RunChecks. `arrived`: of the life of the daemon."""
    description = run.description
    if description is None or not run.ended or description["state"] != "complete" or any(event.what in UNCLEAR for event in run.story.events):
        return
    counted = description["ledger"]["datagrams"]
    if any(counted[name] for name in ("dropped_kernel", "dropped_no_buffer", "discarded_backlog", "stray", "restarted")):
        return
    begin, end = _begin(run), end_of(run)
    if begin is None or end is None or not arrived.admitted:
        return
    # Datagrams that the kernel dropped before the run or at its end are noticed in it, or afterwards.
    if run.life.drops_until(end[1] + SETTLE_NS):
        return
    least, most = np.sum([_lost(arrived.arrivals, board, begin, end) for board in range(run.story.settings["boards"])], axis=0)
    if not least <= counted["lost"] <= most:
        yield f"lost: {counted['lost']}, by the numbers of the datagrams {least} to {most}"


def _begin(run):
    """Between which times the run began to count."""
    if run.description["asked"]["start_ticks"] is not None or run.start_answered_ns is None:
        return None
    return run.asked_ns, run.start_answered_ns


def end_of(run):
    """Between which times the run ceased to count. None: it is not known."""
    if run.description["stop_reason"] == "stopped by operator":
        ended = [at for at, text in run.life.all("answer") if '"ledger_closed"' in text and run.life.document(text)["result"]["run"] == run.name]
        return (run.stop_asked_ns, ended[0]) if ended and run.stop_asked_ns is not None else None
    # A run whose files are still being written counts no more, and has no start then.
    counts = [at for at, status in run.statuses if status["run"]["start_ticks"] is not None]
    after = [at for at, _ in run.life.statuses if counts and at > counts[-1]]
    return (counts[-1], after[0]) if after else None


def _lost(arrivals, board, begin, end):
    """The least and the most that may be missing, wherever the run began and ended within these times."""
    mine = arrivals.all_source == board
    at, number = arrivals.all_at[mine], arrivals.number[mine]
    _, first = np.unique(number, return_index=True)
    at, number = at[np.sort(first)], number[np.sort(first)]
    if not len(number):
        return 0, 0
    highest, lowest = np.maximum.accumulate(number), np.minimum.accumulate(number)
    begins, ends = ([np.searchsorted(at, ns, side) for ns, side in zip((times[0] - READ_NS, times[1]), ("left", "right"))] for times in (begin, end))
    least, most = [], []
    for count in range(begins[0], begins[1] + 1):
        # So many datagrams had arrived when the run began; none: the numbers begin in it.
        top, bottom = (highest[count - 1], lowest[count - 1]) if count else (number[0] - 1, number[0])
        new = np.concatenate(([0], np.cumsum((number > top) | (number < bottom))))
        until = np.arange(max(ends[0], count), max(ends[1], count) + 1)
        span = np.maximum(highest[until - 1] - top, 0) + np.maximum(bottom - lowest[until - 1], 0)
        lost = np.where(until > 0, span - (new[until] - new[count]), 0)
        least.append(lost.min())
        most.append(lost.max())
    return int(min(least)), int(max(most))
