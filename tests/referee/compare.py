"""Agreement of the programs, the reference, GATE's sorter and PETsys' rules, pair by pair, and the cause of each difference."""

import itertools
import multiprocessing
import time
from collections import Counter
from dataclasses import dataclass

import gate
import petsys
from made_set import GEOMETRY, WINDOW
from rules import MODES, POLICIES, Rules, coincidences

SETTINGS = tuple(itertools.product(MODES, POLICIES))
# With the policies that take the most pairs and the fewest.
EXTREMES = ("TakeAllGoods", "RemoveMultiples")
CHUNKS = (1000, 10_000, 100_000)  # singles; the last is the sorter's own choice


@dataclass
class Work:
    """A scene with what was made of it."""

    scene: object
    singles: list
    annihilations: list

    def rules(self, mode, policy):
        return Rules(WINDOW, mode, policy, GEOMETRY)

    def of_numbers(self, pairs):
        return sorted((self.singles[a], self.singles[b]) for a, b in pairs)

    def trues(self, pairs):
        return sum(self.annihilations[a] == self.annihilations[b] != 0 for a, b in pairs)


def timed(function, *arguments):
    """The result, and the CPU time of all threads: wall-clock time would depend on what else the machine does."""
    begin = time.process_time()
    result = function(*arguments)
    return result, time.process_time() - begin


def in_processes(function, settings, jobs):
    """[function(*setting) for setting in settings], in forked processes: these have what is in memory, and `function` sees it."""
    with multiprocessing.get_context("fork").Pool(jobs, initializer=_keep, initargs=(function,)) as pool:
        return pool.map(_call, settings, chunksize=1)


def _keep(function):
    _call.function = function


def _call(setting):
    return _call.function(*setting)


def with_programs(work, programs, mode, policy):
    """Pairs, of these of one annihilation, pairs that only one has, and the CPU seconds of both."""
    expected, of_reference = timed(coincidences, work.singles, work.rules(mode, policy))
    found, of_programs = programs.pairs(work.scene, mode, policy)
    different = Counter(found)
    different.subtract(Counter(work.of_numbers(expected)))
    return {
        "mode": mode, "policy": policy, "pairs": len(expected), "trues": work.trues(expected),
        "different": sum(map(abs, different.values())), "reference_s": of_reference, "programs_s": of_programs}


# What the sorter does otherwise than a window mode, in the order in which the rules are replaced.
STEPS = ("opener only", "same crystal", "overlapping windows")


def steps_to_gate(work, mode, policy):
    """The pairs by the reference, and after each of the steps that lead from the mode to the sorter's rules."""
    rules = work.rules(mode, policy)
    yield None, coincidences(work.singles, rules)
    if mode == "single":
        yield STEPS[0], gate.pairs_by_rules(work.singles, rules, overlapping=False, without_same_crystal=False)
    yield STEPS[1], gate.pairs_by_rules(work.singles, rules, overlapping=False, without_same_crystal=True)
    if mode != "every":
        yield STEPS[2], gate.pairs_by_rules(work.singles, rules, overlapping=True, without_same_crystal=True)


def with_gate(work, sorter, root_file, mode, policy):
    """Pairs here and there, in both, what each step takes away and adds, and what stays unexplained."""
    rules = work.rules(mode, policy)
    found, took = timed(gate.sort, sorter, root_file, rules, mode == "every", len(work.singles))
    found = set(found)
    row = {"mode": mode, "policy": policy, "gate": len(found), "gate_s": took, "steps": {}}
    before = None
    for step, pairs in steps_to_gate(work, mode, policy):
        pairs = set(pairs)
        if step is None:
            row |= {"ours": len(pairs), "both": len(pairs & found)}
        else:
            row["steps"][step] = (len(before - pairs), len(pairs - before))
        before = pairs
    return row | {"unexplained": len(before ^ found)}


def at_chunk_borders(work, sorter, root_file, multi_window, policy, size):
    """How many pairs of the sorter change if its chunks have `size` singles."""
    rules = work.rules("every", policy)
    whole = set(gate.sort(sorter, root_file, rules, multi_window, len(work.singles)))
    found = gate.sort(sorter, root_file, rules, multi_window, size)
    return {
        "multi_window": multi_window, "policy": policy, "size": size, "chunks": -(-len(work.singles) // size),
        "missing": len(whole - set(found)), "added": len(set(found) - whole), "twice": len(found) - len(set(found))}


def with_petsys(work, mode, policy):
    """PETsys' pairs, and why there are more of them."""
    found = set(petsys.pairs(work.singles, WINDOW, GEOMETRY.good))
    ours = set(coincidences(work.singles, work.rules(mode, policy)))
    # No window here holds both singles, with one as the opener where it must be; or the policy refuses the pair.
    candidates = set(coincidences(work.singles, work.rules(mode, "TakeAllGoods")))
    return {
        "mode": mode, "policy": policy, "ours": len(ours), "petsys": len(found), "both": len(ours & found),
        "divided": len(found - candidates), "policy_refuses": len(found & candidates - ours), "only_ours": len(ours - found)}
