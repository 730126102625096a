"""What a run counted, second by second, as rates."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from petacq.optional import pandas_module
from petacq.records import RecordBlocks

if TYPE_CHECKING:
    import pandas

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RunRates:
    """One number for each second of detector time in the run, in order. The first and the last second may be shorter: each
    is divided by its own length. A second that the file does not have is not there; ``start_s`` shows the gap.

    Rates are those that were counted, per second of detector time: nothing makes up for dead time, lost datagrams or
    multiples. ``dead_time``, ``lost`` and ``pile_up`` say how much there was of each. NaN: unknown, or the run writes no
    such pairs. docs/reference/seconds-format.md has the formulas.
    """

    #: Start of the second, s from the start of the run.
    start_s: Floats
    #: Its length, s.
    length_s: Floats
    #: Decided singles per second.
    singles: Floats
    prompts: Floats
    delayeds: Floats
    #: Random prompts for each delayed; NaN in a run without delayeds.
    delayeds_weight: Floats
    #: Random coincidences to be expected among the prompts, per second.
    randoms: Floats
    #: Prompts less randoms, per second: true and scattered pairs.
    net_trues: Floats
    #: Datagrams shown to be missing, per second. Below 0 where more came late than were lost.
    lost: Floats
    #: Pairs that would be found if no window held others, for each one found.
    pile_up: Floats
    #: ``[second][BDM]``: share of the time in which the BDM was blind, as the boards report it.
    dead_time: Floats

    def __len__(self) -> int:
        return len(self.start_s)

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas.DataFrame with a row for each second, at its ``start_s``. Its ``dead_time`` is the mean of the BDMs
        that report it. Raises ImportError without pandas."""
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        known = ~np.isnan(self.dead_time)
        sums = np.where(known, self.dead_time, 0).sum(1)
        columns["dead_time"] = _divided(sums, known.sum(1).astype(np.float64))
        return pandas_module().DataFrame(columns).set_index("start_s")


def rates_of(seconds: RecordBlocks, start_ticks: int, tick_s: float, has_pairs: bool) -> RunRates:
    """``has_pairs``: the run looked for coincidences; if not, their counts of 0 mean nothing."""
    numbers = ["start", "length", "decided", "prompts", "delayeds", "delayeds_weight", "randoms", "lost", "pile_up"]
    of = seconds[[*numbers, "module_dead_time"]]
    length = of["length"] * tick_s

    def per_s(name: str, known: bool = True) -> Floats:
        return _divided(of[name], length) if known else np.full(len(of), np.nan)

    weight = np.where(of["delayeds_weight"] > 0, of["delayeds_weight"], np.nan)
    prompts, randoms = per_s("prompts", has_pairs), per_s("randoms", has_pairs)
    return RunRates(
        start_s=np.asarray((of["start"].astype(np.int64) - start_ticks) * tick_s, np.float64),
        length_s=length,
        singles=per_s("decided"),
        prompts=prompts,
        delayeds=per_s("delayeds", has_pairs),
        delayeds_weight=weight,
        randoms=randoms,
        net_trues=prompts - randoms,
        lost=per_s("lost"),
        pile_up=of["pile_up"].copy(),
        dead_time=_divided(of["module_dead_time"], of["length"][:, None].astype(np.float64)),
    )


def _divided(numbers: npt.NDArray[Any], by: Floats) -> Floats:
    """NaN where that is divided by 0."""
    out = np.full(np.broadcast_shapes(numbers.shape, by.shape), np.nan)
    np.divide(numbers, by, out=out, where=by > 0)
    return out
