// How often two singles of different annihilations become a prompt, under each policy and window mode.
//
// An annihilation leaves one single ("lone") or two that are detected together ("paired"), an earlier and a
// later one. Annihilations come at random, L per tick; x = L w of them fall into a window, on average, besides
// that of the opener. A pair of singles from two of them is taken or not depending on the other pairs of the
// window: t of them are good for certain, like the pairs that belong together, and the others are good with
// some probability. Energies are exchangeable, so that each of k pairs is the winner with probability 1 / k.
// With m others, k of which are good:
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
// Which of the other pairs are good depends on how far apart the two singles are: the mate of a single lies
// opposite, near a single that lies opposite, too.
//
// The end of a window parts the two singles of an annihilation with probability s = <|dt|> / w: only the
// first is inside. In mode "every" the window may also begin between them, and only the second is inside.
// What is left in the window counts as a lone single.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/arithmetic.hpp"
#include "gpu/coincidence_rules.hpp"
#include "gpu/types.hpp"

namespace petacq::gpu {

/// What the annihilation of a single left besides it: nothing, a later single, an earlier one.
enum SingleKind : std::uint8_t { lone_single, earlier_single, later_single };
inline constexpr std::size_t single_kinds = 3;

/// What windows hold. Modules are those around the ring.
struct WindowContents {
    double load = 0;              ///< x
    double lone = 1;              ///< part of the annihilations that leave one single
    double good = 1;              ///< part of the pairs of singles of different annihilations that are good
    double abs_dt = 0;            ///< ticks; mean time between the two singles of an annihilation
    double in_windows = 0;        ///< mode "single": part of the time that lies in windows
    std::vector<double> singles;  ///< [module] part of the singles that lie in it
    std::vector<double> mates;    ///< [a * modules + b] part of the mates of singles in a that lie in b
};

/// Random prompts per tick of two crystals that make a good pair, i in module a and j in module b, for rates v
/// of their singles per tick, by kind: the sum of of[x][y] v_i[x] v_j[y]. In ticks.
struct PairChances {
    using ByKinds = std::array<std::array<double, single_kinds>, single_kinds>;
    ByKinds of{};
    ByKinds first{};  ///< the part of it in which i comes before j
};
/// [a * modules + b]. `kind`: delayed for the delayeds of shifted groups, as if none of the groups fell inside a
/// prompt window.
std::vector<PairChances> pair_chances(const CoincidenceRules& rules, const PairRule& rule,
                                      const WindowContents& contents, Kind kind);

}  // namespace petacq::gpu
