"""What a file covers, by sets of intervals: slow and simple. Ticks are whole numbers, intervals (start, end)."""

import math
from fractions import Fraction


def intersect(a, b):
    found = ((max(p[0], q[0]), min(p[1], q[1])) for p in a for q in b)
    return unite([interval for interval in found if interval[0] < interval[1]])


def unite(*sets):
    out = []
    for start, end in sorted(interval for intervals in sets for interval in intervals):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], end))
        else:
            out.append((start, end))
    return out


def length(intervals):
    return sum(end - start for start, end in intervals)


def phase(triggers, number, bins):
    """Phase `number`, from 1, of the cycles between successive triggers."""
    out = []
    for begin, end in zip(triggers, triggers[1:]):
        edges = [begin + math.ceil(Fraction(end - begin) * part / bins) for part in (number - 1, number)]
        out.append(tuple(edges))
    return unite([edge for edge in out if edge[0] < edge[1]])


def open_gate(changes, end):
    """`changes`: (time, whether it opens), from before the first record on."""
    out = []
    since = None
    for time, opens in changes:
        if opens and since is None:
            since = time
        elif not opens and since is not None:
            out.append((since, time))
            since = None
    if since is not None:
        out.append((since, end))
    return unite(out)


def decay_factor(intervals, reference, half_life, steps=20_000):
    """Activity at the reference divided by its mean, by adding up; all in ticks."""
    total = length(intervals)
    decayed = 0.0
    for start, end in intervals:
        parts = max(1, round(steps * (end - start) / total))
        step = (end - start) / parts
        decayed += sum(2 ** (-(start + (i + 0.5) * step - reference) / half_life) for i in range(parts)) * step
    return total / decayed if total else 1.0


def live(intervals, seconds):
    """`seconds`: (start, end, mean live share of the modules)."""
    weights = [(length(intersect(intervals, [(start, end)])), share) for start, end, share in seconds]
    total = sum(weight for weight, _ in weights)
    return sum(weight * share for weight, share in weights) / total if total else None
