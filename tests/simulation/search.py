"""The pairs and triples of some singles (docs/reference/configuration.md, `coincidence` and `gammas`), by plain searches in sorted times.

Window mode "single", policy RemoveMultiples. Singles are in order of time, crystal and energy.
"""

import numpy as np

from play import DELAY_TICKS, GAMMA, LOWER_KEV, UPPER_KEV, WINDOW_TICKS
from reference import in_window

PROMPT, DELAYED = 0, 1
PAIR = np.dtype([("time", "i8"), ("kind", "u1"), ("crystal_a", "u4"), ("dt", "i4"), ("crystal_b", "u4"), ("energy_a", "f4"), ("energy_b", "f4")])
TRIPLE = np.dtype(PAIR.descr + [("third", "u1"), ("gamma_dt", "i4"), ("gamma_crystal", "u4"), ("gamma_energy", "f4")])


class Singles:
    def __init__(self, records):
        self.time, self.crystal, self.energy = records["time"].astype("i8"), records["crystal"], records["energy"]

    def at(self, i):
        return self.time[i], self.crystal[i], self.energy[i]

    def first_from(self, times):
        """The number of the first single that is not before each time."""
        return np.searchsorted(self.time, times)

    def first_from_copies(self, of, delay):
        """The number of the first single that is not before the copy of each of these after a delay."""
        found = self.first_from(self.time[of] + delay)
        inside = found < len(self.time)
        for i in np.flatnonzero(inside)[self.time[found[inside]] == self.time[of[inside]] + delay]:
            copy = (self.time[of[i]] + delay, self.crystal[of[i]], self.energy[of[i]])
            while found[i] < len(self.time) and self.at(found[i]) < copy:
                found[i] += 1
        return found

    def pairs(self, kind, a, b, delay=0):
        """Of the singles of these numbers, unless they are of one crystal. The opener comes first, also of two at the same time."""
        a, b = (i[self.crystal[a] != self.crystal[b]] for i in (a, b))
        out = np.empty(len(a), PAIR)
        out["time"], out["kind"], out["dt"] = self.time[a], kind, self.time[b] - delay - self.time[a]
        out["crystal_a"], out["crystal_b"], out["energy_a"], out["energy_b"] = self.crystal[a], self.crystal[b], self.energy[a], self.energy[b]
        return out


def openers_of(singles):
    """The first single opens a window, the first one after that the next."""
    after, openers, i = singles.first_from(singles.time + WINDOW_TICKS + 1).tolist(), [], 0
    while i < len(after):
        openers.append(i)
        i = after[i]
    return np.array(openers, int)


def shifted_groups(singles, openers, sizes):
    before = Singles(dict(zip(("time", "crystal", "energy"), singles.at(openers))))
    block = before.first_from_copies(np.arange(len(openers)), DELAY_TICKS) - 1
    blocked = (block >= 0) & (before.time + DELAY_TICKS - before.time[block] <= WINDOW_TICKS)
    first, last = singles.first_from_copies(openers, DELAY_TICKS), singles.first_from(before.time + DELAY_TICKS + WINDOW_TICKS + 1)
    good = ~blocked & (sizes == 1) & (last - first == 1)
    return singles.pairs(DELAYED, openers[good], first[good], DELAY_TICKS)


def delayed_windows(singles):
    first, last = (singles.first_from(singles.time + DELAY_TICKS + more) for more in (0, WINDOW_TICKS + 1))
    good = last - first == 1
    return singles.pairs(DELAYED, np.flatnonzero(good), first[good], DELAY_TICKS)


def pairs(records, delayeds):
    """`records`: singles of a run; gammas are among them. `delayeds`: by which rule."""
    singles = Singles(records[in_window(records, LOWER_KEV, UPPER_KEV)])
    openers = openers_of(singles)
    sizes = np.diff(openers, append=len(singles.time))
    two = openers[sizes == 2]
    delayed = delayed_windows(singles) if delayeds == "delayed_window" else shifted_groups(singles, openers, sizes)
    return np.concatenate([singles.pairs(PROMPT, two, two + 1), delayed])


def triples(records, found, policy):
    """Of these pairs."""
    gammas = Singles(records[in_window(records, GAMMA["lower_keV"], GAMMA["upper_keV"])])
    parts = []
    for third, delay in ((0, 0), (1, GAMMA["delay_ticks"])):
        at = found["time"] + delay
        first, last = gammas.first_from(at - GAMMA["before_ticks"]), gammas.first_from(at + GAMMA["after_ticks"] + 1)
        count = last - first
        if policy == "only_one":
            count = np.where(count == 1, 1, 0)
        of = np.repeat(np.arange(len(found)), count)
        gamma = np.arange(len(of)) - np.repeat(np.cumsum(count) - count, count) + first[of]
        dt = gammas.time[gamma] - at[of]
        if policy == "nearest":
            near = np.lexsort((gamma, abs(dt), of))
            near = near[np.unique(of[near], return_index=True)[1]]
            of, gamma, dt = of[near], gamma[near], dt[near]
        out = np.empty(len(of), TRIPLE)
        for name in PAIR.names:
            out[name] = found[name][of]
        out["third"], out["gamma_dt"], out["gamma_crystal"], out["gamma_energy"] = third, dt, gammas.crystal[gamma], gammas.energy[gamma]
        parts.append(out)
    return np.concatenate(parts)
