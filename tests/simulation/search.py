"""The pairs and triples of some singles: slow and obvious (docs/reference/configuration.md, `coincidence` and `gammas`).

Window mode "single", policy RemoveMultiples. A pair is (time, kind, crystal_a, dt, crystal_b, energy_a, energy_b), a triple a pair
and (third, gamma_dt, gamma_crystal, gamma_energy): tuples whose order is that of the files.
"""

from bisect import bisect_left

from play import DELAY_TICKS, GAMMA, LOWER_KEV, UPPER_KEV, WINDOW_TICKS
from reference import in_window

PROMPT, DELAYED = 0, 1


def pair(kind, a, b):
    """Of two singles (time, crystal, energy). The opener comes first, also of two at the same time."""
    return a[0], kind, a[1], b[0] - a[0], b[1], a[2], b[2]


def groups_of(singles):
    """Of singles in order: the first opens a window, the first one after that the next."""
    groups = []
    for single in singles:
        if groups and single[0] - groups[-1][0][0] <= WINDOW_TICKS:
            groups[-1].append(single)
        else:
            groups.append([single])
    return groups


def good(a, b):
    return a[1] != b[1]


def prompts(groups):
    return [pair(PROMPT, *group) for group in groups if len(group) == 2 and good(*group)]


def shifted_groups(singles, groups):
    openers = [group[0] for group in groups]
    for group in groups:
        place = (group[0][0] + DELAY_TICKS, *group[0][1:])
        before = bisect_left(openers, place) - 1
        if before >= 0 and place[0] - openers[before][0] <= WINDOW_TICKS:
            continue  # blocked
        first = bisect_left(singles, place)
        last = bisect_left(singles, (place[0] + WINDOW_TICKS + 1,))
        if len(group) == last - first == 1 and good(group[0], singles[first]):
            yield pair(DELAYED, group[0], (singles[first][0] - DELAY_TICKS, *singles[first][1:]))


def delayed_windows(singles):
    for single in singles:
        first, last = (bisect_left(singles, (single[0] + DELAY_TICKS + more,)) for more in (0, WINDOW_TICKS + 1))
        if last - first == 1 and good(single, singles[first]):
            yield pair(DELAYED, single, (singles[first][0] - DELAY_TICKS, *singles[first][1:]))


def pairs(singles, delayeds):
    """`singles`: of a run; gammas are among them. `delayeds`: by which rule."""
    inside = singles[in_window(singles, LOWER_KEV, UPPER_KEV)].tolist()
    groups = groups_of(inside)
    return sorted(prompts(groups) + list(delayed_windows(inside) if delayeds == "delayed_window" else shifted_groups(inside, groups)))


def triples(singles, found, policy):
    """Of these pairs."""
    gammas = singles[in_window(singles, GAMMA["lower_keV"], GAMMA["upper_keV"])].tolist()
    result = []
    for one in found:
        for third, delay in ((0, 0), (1, GAMMA["delay_ticks"])):
            t = one[0] + delay
            near = gammas[bisect_left(gammas, (t - GAMMA["before_ticks"],)) : bisect_left(gammas, (t + GAMMA["after_ticks"] + 1,))]
            if policy == "only_one" and len(near) > 1:
                near = []
            elif policy == "nearest":
                near = sorted(near, key=lambda gamma: abs(gamma[0] - t))[:1]
            result += [(*one, third, gamma[0] - t, *gamma[1:]) for gamma in near]
    return sorted(result)
