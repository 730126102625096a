// How often two singles of different annihilations become a prompt, under each policy and window mode.
// docs/design/randoms.md has the derivation.
//
// An annihilation leaves one single ("lone") or two that are detected together, an earlier and a later one.
// Annihilations come at random; energies are exchangeable. The probability that a pair is taken is a product
// over the other pairs of the window, and the sum over the numbers of other annihilations is a power series.
// L: annihilations per tick; w: width of a window; x = L w.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/base/records.hpp"
#include "gpu/randoms/pair_cells.hpp"
#include "gpu/rules/coincidence_rules.hpp"

namespace petacq::gpu {

/// Whether the annihilation of a single gave no other single, or the single is the earlier or the later of
/// two.
enum SingleKind : std::uint8_t { lone_single, earlier_single, later_single };
inline constexpr std::size_t single_kinds = 3;

/// How many singles a coincidence window holds, of which kinds, and where they lie.
struct WindowContents {
    double load = 0;        ///< x
    double lone = 1;        ///< part of the annihilations that leave one single
    double good = 1;        ///< part of the pairs of singles of different annihilations that are good
    double abs_dt = 0;      ///< ticks; mean time between the two singles of an annihilation
    double in_windows = 0;  ///< part of the time that lies in windows; 0 in mode "every"
    /// How often the pair of two partners has the largest energy sum, for each time that another pair has it;
    /// under take_winner_if_is_good, where partners win whether they are good or not.
    double partner_weight = 1;
    /// [a * cells + b] the same of singles of two cells. Only for policies that ask which pairs are good, as
    /// are the following two.
    std::vector<double> good_parts;
    std::vector<double> singles;   ///< [cell] part of the singles that lie in it
    std::vector<double> partners;  ///< [a * cells + b] part of the partners of singles in a that lie in b
    /// [a * cells + b] part of the pairs of a single in a and its partner in b that are good.
    std::vector<double> good_partners;
};

/// Random prompts per tick of two crystals that make a good pair, i in cell a and j in cell b, for rates
/// v of their singles per tick, by kind: the sum of of[x][y] v_i[x] v_j[y]. In ticks.
struct PairChances {
    using ByKinds = std::array<std::array<double, single_kinds>, single_kinds>;
    ByKinds of{};
    ByKinds first{};      ///< the part of it in which i comes before j
    ByKinds abs_dt{};     ///< the sum times the mean time between i and j; in ticks^2
    double partners = 0;  ///< probability that a true, good pair becomes a prompt
};
/// [a * cells + b]. `kind`: delayed for the delayeds of shifted groups, as if none of the groups fell
/// inside a prompt window.
std::vector<PairChances> pair_chances(const CoincidenceRules& rules, const PairCells& cells,
                                      const WindowContents& contents, Kind kind);
/// The same for a pair to be all that its window holds, under any policy, wherever the two lie and whether
/// they are good or not.
PairChances chances_alone(const CoincidenceRules& rules, const PairCells& cells,
                          const WindowContents& contents);

}  // namespace petacq::gpu
