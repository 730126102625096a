"""The options of a run, what cannot go together, and a covering array: runs that hold every possible pair of values."""

import itertools
import random

# A new feature is one more line.
OPTIONS = {
    "framing": ("sequenced", "bare"),
    "format": ("own", "petsys"),
    "singles": ("no", "yes"),
    "coincidences": ("on", "off"),
    "spectra": ("no", "yes"),
    "raw": ("no", "yes"),
    "tags": ("none", "all"),
    "split": ("none", "size", "time"),
    "files": (1, 3),
    "compression": ("none", "zstd"),
    "delayeds": ("none", "shifted_group", "delayed_window"),
    "policy": ("RemoveMultiples", "TakeAllGoods", "TakeWinnerOfGoods", "TakeIfOnlyOneGood", "TakeWinnerIfIsGood",
               "TakeWinnerIfAllAreGoods"),
    "mode": ("single", "every", "single_opener"),
    "gammas": ("off", "on"),
    "interval": ("all", "from-to", "duration"),
    "source": ("replay", "live", "hosts"),
    "sockets": (1, 2),
}

IMPOSSIBLE = {
    (("format", "petsys"), ("framing", "sequenced")): "datagrams of PETsys have no sequence numbers",
    (("format", "petsys"), ("tags", "all")): "the layout of PETsys declares no tags",
    (("coincidences", "off"), ("singles", "no")): "petacqd refuses a run that writes nothing",
    (("source", "hosts"), ("singles", "no")): "runs of hosts are joined from their singles",
    (("source", "replay"), ("interval", "duration")): "a replay takes an interval, no duration",
    (("source", "hosts"), ("interval", "duration")): "the hosts here replay captures",
    (("source", "replay"), ("sockets", 2)): "a replay has no sockets",
    (("source", "hosts"), ("sockets", 2)): "the hosts here replay captures",
}


def fits(values):
    """Whether these (option, value) go together."""
    held = set(values)
    return not any(set(pair) <= held for pair in IMPOSSIBLE)


def possible_pairs():
    """All pairs of values of two options that go together, in the order of the table."""
    return [pair for one, other in itertools.combinations(OPTIONS, 2)
            for pair in itertools.product([(one, value) for value in OPTIONS[one]], [(other, value) for value in OPTIONS[other]])
            if fits(pair)]


def pairs_of(run):
    return {((one, run[one]), (other, run[other])) for one, other in itertools.combinations(OPTIONS, 2)}


def _completed(pair, missing, choose):
    """A run with this pair, and as many of the missing ones as a greedy choice of one option after the other finds."""
    run = dict(pair)
    options = [option for option in OPTIONS if option not in run]
    choose.shuffle(options)
    for option in options:
        allowed = [value for value in OPTIONS[option] if fits([*run.items(), (option, value)])]

        def gain(value, option=option):
            together = {frozenset(((option, value), held)) for held in run.items()}
            return sum(frozenset(pair) in together for pair in missing)
        choose.shuffle(allowed)
        run[option] = max(allowed, key=gain)
    return {option: run[option] for option in OPTIONS}


def covering_array(seed=2):
    """Runs, each a value for every option, that together hold all possible pairs. Always the same ones."""
    choose = random.Random(seed)
    missing = possible_pairs()
    runs = []
    while missing:
        tries = [_completed(choose.choice(missing), missing, choose) for _ in range(20)]
        best = max(tries, key=lambda run: len(pairs_of(run).intersection(missing)))
        runs.append(best)
        held = pairs_of(best)
        missing = [pair for pair in missing if pair not in held]
    return runs


def prove(runs):
    """Throws if a run cannot be, or a pair is missing."""
    held = set().union(*map(pairs_of, runs))
    lacking = [pair for pair in possible_pairs() if pair not in held]
    if lacking:
        raise AssertionError(f"the runs lack {lacking}")
    wrong = [run for run in runs if not fits(run.items())]
    if wrong:
        raise AssertionError(f"these runs cannot be: {wrong}")
