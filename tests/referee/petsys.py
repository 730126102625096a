"""The coincidence rules of PETsys' sw_daq_tofpet2, written out.

Source: https://github.com/PETsys/sw_daq_tofpet2, src/base/CoincidenceGrouper.cpp (commit bf7ef050eb9c4e98b17d6f0046ae35a07c58fc61)
and isCoincidenceAllowed in src/base/SystemConfig.hpp. The code here is our own.

- Each photon is joined with each later one that is at most sw_trigger_coincidence_time_window away, inclusive, if the trigger map
  allows their two regions. There are no windows that open and close, no multiples, no policy and no winner.
- The photon of the region with the larger number comes first in a pair.

The code joins the photons of one buffer of events. Here all are in one.
"""


def pairs(singles, window, allowed):
    """The pairs of numbers of ordered singles, in order. `allowed`: the trigger map, asked with two crystals; each is a region."""
    found = []
    for a, first in enumerate(singles):
        b = a + 1
        while b < len(singles) and singles[b].time - first.time <= window:
            if allowed(first.crystal, singles[b].crystal):
                found.append((a, b))
            b += 1
    return found
