// How often two singles of different annihilations become a prompt, under each policy and window mode.
//
// An annihilation leaves one single ("lone") or two that are detected together ("paired"). Annihilations come
// at random, L per tick; x = L w of them fall into a window, on average, besides that of the opener. A pair
// of singles from two of them is taken or not depending on the other pairs of the window: t of them are good
// for certain, like the pairs that belong together, and the others are good with some probability. Energies
// are exchangeable, so that each of k pairs is the winner with probability 1 / k. With m others, k of which
// are good:
//
//   RemoveMultiples           1 if t = m = 0, else 0
//   TakeAllGoods              1
//   TakeWinnerOfGoods         mean of 1 / (1 + t + k)
//   TakeIfOnlyOneGood         probability of t + k = 0
//   TakeWinnerIfIsGood        1 / (1 + t + m)
//   TakeWinnerIfAllAreGoods   probability of k = m, times 1 / (1 + t + m)
//
// The number of annihilations in a window is a Poisson number. With RemoveMultiples in mode "single" this
// gives 2 w e^-x / (1 + x) for two lone singles.
//
// The end of a window parts the two singles of an annihilation with probability s = <|dt|> / w: only the
// first is inside. In mode "every" the window may also begin between them, and only the second is inside.
// What is left in the window counts as a lone single.
#pragma once

#include "gpu/coincidence_rules.hpp"
#include "gpu/types.hpp"

namespace petacq::gpu {

/// What windows hold.
struct WindowContents {
    double load = 0;       ///< x
    double lone = 1;       ///< part of the annihilations that leave one single
    double good = 1;       ///< part of the pairs of singles of different annihilations that are good
    double good_mate = 1;  ///< if (a, b) is such a pair, and good: that a and the mate of b are good, too
    double good_none = 0;  ///< likewise, that neither a nor b makes a good pair with a third single
    double abs_dt = 0;     ///< ticks; mean time between the two singles of an annihilation
};

/// Random prompts per tick of two crystals i and j that make a good pair, for rates A of lone and B of paired
/// singles per tick: lone_lone A_i A_j + lone_paired (A_i B_j + B_i A_j) + paired_paired B_i B_j.
struct PairChances {
    double lone_lone = 0;  ///< all in ticks
    double lone_paired = 0;
    double paired_paired = 0;
};
/// `kind`: delayed for the delayeds of shifted groups, as if none of the groups fell inside a prompt window.
PairChances pair_chances(const CoincidenceRules& rules, const WindowContents& contents, Kind kind);

}  // namespace petacq::gpu
