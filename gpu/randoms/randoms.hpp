// The random coincidences to be expected among the prompts, from what the pipeline adds up over an interval.
// The estimate needs no delayeds and has very little noise. docs/design/randoms.md derives it.
//
// For each crystal it finds the rates of singles by kind: A of lone ones, E and B of the earlier and the
// later of two that belong together. pair_chances.hpp has the formula for the randoms of two crystals,
// window_load.hpp the contents of a window, axial_partners.hpp the partners along the axis.
//
// The rates must be constant over the interval: sums over a decaying source are taken second by second.
#pragma once

#include <cstdint>
#include <vector>

#include "config/scanner/geometry.hpp"
#include "gpu/interval_sums.hpp"
#include "gpu/randoms/axial_partners.hpp"
#include "gpu/randoms/good_pairs.hpp"
#include "gpu/randoms/pair_cells.hpp"
#include "gpu/randoms/pair_chances.hpp"
#include "gpu/randoms/pairs_by_side.hpp"
#include "gpu/rules/coincidence_rules.hpp"

namespace petacq::gpu {

/// Random prompts: of a crystal, of a pair of sides, in all.
using ExpectedRandoms = PairProducts;

/// The randoms of any two crystals in an interval.
struct RandomsByPair {
    CrystalValues rates;               ///< per tick; noise may make them negative
    std::vector<PairChances> chances;  ///< [a * cells + b]
    double ticks = 0;

    /// Without asking whether the pair is good.
    [[nodiscard]] double of(const PairCells& cells, std::uint32_t i, std::uint32_t j) const;
};

/// Used by one thread at a time. The same input gives the same result, bit for bit.
class RandomsEstimator {
  public:
    RandomsEstimator(const config::Geometry& geometry, const CoincidenceRules& rules);

    /// The random prompts of an interval of `ticks`. REQUIRES: sums of this scanner under these rules.
    void estimate(const IntervalSums& sums, std::uint64_t ticks, ExpectedRandoms& out);
    /// That of the latest estimate, pair by pair.
    [[nodiscard]] const RandomsByPair& by_pair() const { return by_pair_; }
    /// The true pairs of that interval that would be prompts if no window held others and no edge of a window
    /// parted them, for each one that is.
    [[nodiscard]] double pile_up() const { return pile_up_; }
    /// How many random prompts each delayed of that interval stands for; 0 without a delay.
    [[nodiscard]] double delayeds_weight() const { return delayeds_weight_; }
    /// Whether the randoms of that interval may be off by more than 2 %: the policy asks which pairs are
    /// good, and too little tells where the partners lie that make no good pair (docs/design/randoms.md).
    [[nodiscard]] bool uncertain() const {
        return pairs_.cells().lacks_zones || refused_partners_ > most_refused ||
               (pairs_.cells().partners_refused && by_side_.lacks_modules());
    }
    /// The part of the true pairs of that interval that is not good, among those whose sides can join. It is
    /// 0 unless the policy asks which pairs are good, and the rule has a condition along the axis or a field
    /// of view. The places of the partners along the axis are then guessed, well enough up to `most_refused`.
    [[nodiscard]] double refused_partners() const { return refused_partners_; }
    static constexpr double most_refused = 0.3;

  private:
    /// `later`: [sector] which part of its paired singles are the later ones; empty: half of them.
    void find_rates(const IntervalSums& sums, const WindowContents& contents,
                    const std::vector<double>& later);
    /// IntervalSums::refused_pairs of sides.
    struct RefusedPairs {
        double taken = 0;             ///< probability that a true pair that geometry refuses is among them
        std::vector<double> randoms;  ///< [a * sides + b] those among them; within a side, in both orders
        std::vector<double> first;    ///< [a] the part of the randoms in a that come first
    };
    [[nodiscard]] RefusedPairs find_refused(const IntervalSums& sums, const WindowContents& contents) const;
    /// `later` from the true pairs, with the randoms that were found before.
    [[nodiscard]] std::vector<double> find_later(const IntervalSums& sums, const ExpectedRandoms& randoms,
                                                 const RefusedPairs& refused) const;
    /// [a * sides + b]: the true pairs, found or lost to other singles of their
    /// windows. Noise may make them negative. Symmetric.
    struct TruePairs {
        std::vector<double> good;
        std::vector<double> refused;
        std::vector<double> variance;  ///< of their sum
    };
    [[nodiscard]] TruePairs true_pairs(const IntervalSums& sums, const ExpectedRandoms& randoms,
                                       const RefusedPairs& refused, const WindowContents& contents);
    /// [a * sides + b]: part of the partners of singles in a that lie in b.
    [[nodiscard]] std::vector<double> find_partners(const TruePairs& trues,
                                                    const std::vector<double>& singles) const;
    /// WindowContents::partners and good_partners. Without randoms, as a guess.
    void find_all_partners(WindowContents& contents, const IntervalSums& sums, const TruePairs& trues,
                           const ExpectedRandoms& randoms);
    /// The same with a field of view: whether a partner is good depends on the sides of both, and on their
    /// zones.
    void spread_partners(WindowContents& contents, const TruePairs& trues, const std::vector<double>& by_side,
                         const AxialPartners& axial, const std::vector<double>& good_parts) const;
    /// [zone] singles with a partner on a side that can join theirs, and those of them that make a good pair
    /// with it, from the true prompts.
    struct PairedSingles {
        std::vector<double> all;
        std::vector<double> good;
        std::vector<double> good_parts;  ///< [cell]
    };
    /// `apart`: [side] the part of the partners that lie on such sides.
    [[nodiscard]] PairedSingles paired_singles(const IntervalSums& sums, const ExpectedRandoms& randoms,
                                               const WindowContents& contents,
                                               const std::vector<double>& apart) const;
    /// WindowContents::partner_weight.
    [[nodiscard]] double find_partner_weight(const IntervalSums& sums, const WindowContents& contents) const;
    /// What follows from the rates.
    void find_contents(WindowContents& contents) const;
    [[nodiscard]] double find_pile_up(const WindowContents& contents) const;
    [[nodiscard]] double find_delayeds_weight(const SingleCounts& counts,
                                              const WindowContents& contents) const;

    const CoincidenceRules rules_;
    GoodPairs pairs_;
    std::vector<std::uint16_t> sector_of_;  ///< [crystal] of its BDM
    std::vector<std::uint32_t> cell_of_;    ///< [crystal]
    PairsBySide by_side_;
    PairsBySide::Fit good_fit_;  ///< of the interval
    PairsBySide::Fit refused_fit_;
    RandomsByPair by_pair_;
    double delayeds_weight_ = 0;
    double pile_up_ = 1;
    double refused_partners_ = 0;
};

}  // namespace petacq::gpu
