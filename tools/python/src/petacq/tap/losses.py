"""Which records a stream lacks: known from their numbers in the run."""

from __future__ import annotations


class Losses:
    """Follows the numbers of records. A stream may break off and be taken up by another connection."""

    def __init__(self, prescale: int) -> None:
        self._prescale = prescale
        self._connected_before = False
        self._run: str | None = None
        self._next: int | None = None  # number of the record that should come next; None: any
        self._ended = True
        #: Chosen records of the run that are missing in front of the latest array.
        self.missing = 0
        #: All of these.
        self.missed = 0
        #: Runs whose end was not seen: what is missing there is not known.
        self.unended: tuple[str, ...] = ()

    def run_started(self, run: str) -> None:
        if run != self._run:
            self._note_unended()
            # Who connects for the first time may do so in the middle of a run; afterwards, each run begins with record 0.
            self._next = 0 if self._connected_before else None
            self._run = run
        self._connected_before = True
        self._ended = False

    def records_came(self, first: int, count: int) -> None:
        expected = first if self._next is None else self._next
        self.missing = max(0, first - expected) // self._prescale
        self.missed += self.missing
        self._next = first + count * self._prescale

    def run_ended(self) -> None:
        self._ended = True

    def _note_unended(self) -> None:
        if self._run is not None and not self._ended:
            self.unended += (self._run,)
