"""The table of the matrix: what a row declares."""

import dataclasses
import itertools
from typing import Callable

ALL = []


@dataclasses.dataclass(frozen=True)
class Variant:
    framing: str = "sequenced"
    listed: bool = False  # the sources are listed; else anybody may send
    sockets: int = 1

    def __str__(self):
        return f"{self.framing}, {'listed' if self.listed else 'anybody'}, {self.sockets} socket{'s' * (self.sockets > 1)}"


@dataclasses.dataclass
class Row:
    name: str
    fault: str
    when: str  # before, during, pause, end: of the run; -: no live run
    loses: object  # most records that may be missing; a function of the stage
    counters: object  # path in the ledger of the run -> value, or a function of the value; a function of the variant
    play: Callable
    framings: tuple
    lists: tuple
    socket_counts: tuple
    state: str  # of the run
    reason: str  # text in run.json's reason of the stop
    health: str  # a code that the status shows before the stop
    short: bool
    patch: dict
    stream: dict
    run: bool  # the stage starts and stops a run, and compares

    def counters_of(self, variant):
        return self.counters(variant) if callable(self.counters) else self.counters

    def names(self, variant):
        """What must report the fault, for people."""
        return ", ".join([*self.counters_of(variant), *([f"health {self.health}"] if self.health else [])]) or "-"

    def variants(self):
        for framing, listed, sockets in itertools.product(self.framings, self.lists, self.socket_counts):
            yield Variant(framing, listed, sockets)

    def short_variant(self, variant):
        return self.short and variant == next(self.variants())

    def title(self, variant):
        return f"{self.name}: {self.fault} ({variant})" if self.run else f"{self.name}: {self.fault}"


def by_list(listed, anybody):
    """Counters that depend on whether the sources are listed."""
    return lambda variant: listed if variant.listed else anybody


def row(fault, *, when="-", loses=0, counters=None, framings=("sequenced",), lists=(False,), sockets=(1,), state="complete",
        reason="", health="", short=False, patch=None, stream=None, run=True):
    """Adds the decorated function, which plays the fault on a Stage, to the table."""

    def add(play):
        ALL.append(Row(play.__name__, fault, when, loses, counters or {}, play, framings, lists, sockets, state, reason,
                       health, short, patch or {}, stream or {}, run))
        return play

    return add


def check(fault, **options):
    """A row without a live run of its own: the function does everything."""
    return row(fault, run=False, **options)
