"""The slow reference: which singles become prompt coincidences, in every window mode and under every multiples policy.

Written from docs/explanation/coincidence-rules.md, to be read. It knows nothing of the programs.
"""

from dataclasses import dataclass
from typing import NamedTuple

MODES = ("single", "single_opener", "every")
POLICIES = ("RemoveMultiples", "TakeAllGoods", "TakeWinnerOfGoods", "TakeIfOnlyOneGood", "TakeWinnerIfIsGood", "TakeWinnerIfAllAreGoods")


class Single(NamedTuple):
    """Singles are in the order of these fields."""

    time: int  # ticks
    crystal: int
    energy: float  # keV


@dataclass(frozen=True)
class Geometry:
    """A ring of modules; crystals are counted around the ring first."""

    modules: int
    crystals_of_module: int  # around the ring
    min_module_difference: int
    max_ring_difference: int

    def module_of(self, crystal):
        return crystal // self.crystals_of_module % self.modules

    def ring_of(self, crystal):
        return crystal // (self.crystals_of_module * self.modules)

    def good(self, a, b):
        """Whether two crystals may see one annihilation."""
        apart = abs(self.module_of(a) - self.module_of(b))
        around = min(apart, self.modules - apart)
        rings = abs(self.ring_of(a) - self.ring_of(b))
        return a != b and around >= self.min_module_difference and rings <= self.max_ring_difference


@dataclass(frozen=True)
class Rules:
    window: int  # ticks, inclusive
    mode: str
    policy: str
    geometry: Geometry
    max_multiplicity: int = 64


def windows(singles, rules):
    """The numbers of the singles in each window; the first opens it."""
    opener = 0
    while opener < len(singles):
        end = opener + 1
        while end < len(singles) and singles[end].time - singles[opener].time <= rules.window:
            end += 1
        yield range(opener, end)
        # In mode "every" each single opens a window, in the others each that lies in none.
        opener = opener + 1 if rules.mode == "every" else end


def candidates(window, rules):
    """The pairs that may be taken: all of the window, or those with its opener."""
    openers = window if rules.mode == "single" else window[:1]
    return [(a, b) for a in openers for b in window if a < b]


def taken(pairs, singles, rules):
    """The pairs that the policy takes of the candidates of one window."""

    def good(pair):
        return rules.geometry.good(singles[pair[0]].crystal, singles[pair[1]].crystal)

    def energy(pair):
        return singles[pair[0]].energy + singles[pair[1]].energy

    goods = [pair for pair in pairs if good(pair)]
    if len(pairs) == 1 or rules.policy == "TakeAllGoods":
        return goods
    if rules.policy == "TakeIfOnlyOneGood":
        return goods if len(goods) == 1 else []
    if rules.policy == "RemoveMultiples" or not goods:
        return []
    # Of several pairs with the same energy the first wins, as max() has it.
    if rules.policy == "TakeWinnerOfGoods":
        return [max(goods, key=energy)]
    winner = max(pairs, key=energy)
    if rules.policy == "TakeWinnerIfIsGood":
        return [winner] if good(winner) else []
    return [winner] if len(goods) == len(pairs) else []  # TakeWinnerIfAllAreGoods


def coincidences(singles, rules):
    """The pairs of numbers of ordered singles, in order."""
    found = []
    for window in windows(singles, rules):
        if 2 <= len(window) <= rules.max_multiplicity:
            found += taken(candidates(window, rules), singles, rules)
    return sorted(found)
