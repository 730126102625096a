#include "gpu/pair_chances.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "gpu/window_load.hpp"

namespace petacq::gpu {

namespace {

/// Windows with more annihilations besides the two of the pair are left out.
constexpr unsigned most_others = 24;

/// Calls use(k, probability) for k = 0 ... n successes in n trials.
template <class Use>
void for_each_binomial(unsigned n, double p, Use use) {
    if (p >= 1) return use(n, 1.0);
    double chance = std::pow(1 - p, n);
    for (unsigned k = 0; k <= n; ++k) {
        use(k, chance);
        chance *= p / (1 - p) * (n - k) / (k + 1);
    }
}

/// The other pairs of a window.
struct OtherPairs {
    unsigned certain;  ///< good for certain
    unsigned mates;    ///< good with WindowContents::good_mate
    unsigned thirds;   ///< third singles, which make a pair with each single of the pair
    unsigned others;   ///< good with WindowContents::good
    [[nodiscard]] unsigned all() const { return certain + mates + 2 * thirds + others; }
};

class Windows {
  public:
    Windows(const CoincidenceRules& rules, const WindowContents& contents, Kind kind)
        : rules_(rules),
          contents_(contents),
          parted_(contents.abs_dt / window_width(rules)),
          every_(rules.mode == WindowMode::every),
          good_both_(std::max(0.0, 2 * contents.good - 1 + contents.good_none)) {
        const double paired = 1 - contents.lone;
        const double more = every_ ? paired * parted_ : 0;  // those of which only the second single is inside
        load_ = contents.load * (1 + more) * (kind == Kind::delayed ? 2 : 1);
        whole_ = paired * (1 - parted_) / (1 + more);
    }

    /// That a paired single lies in the window with its mate, and without.
    [[nodiscard]] double whole() const { return 1 - parted_; }
    [[nodiscard]] double parted() const { return every_ ? parted_ : parted_ / 2; }
    /// That so many annihilations fall into a window, or into both of a delayed.
    [[nodiscard]] double poisson(unsigned n) const {
        return std::exp(-load_) * std::pow(load_, n) / std::tgamma(n + 1.0);
    }

    /// That a good pair of a group is taken, besides which the group holds `others` annihilations. `mates`:
    /// how many of its two singles have their mate in it.
    [[nodiscard]] double of_group(unsigned others, unsigned mates) const {
        return mean_over(others, [&](unsigned whole) {
            const unsigned singles = 2 + mates + others + whole;
            if (singles > rules_.max_multiplicity) return 0.0;
            OtherPairs pairs{mates + whole, mates, others + whole, 0};
            if (mates == 2) ++pairs.certain;  // the mates lie as far apart as the singles
            pairs.others = singles * (singles - 1) / 2 - 1 - pairs.all();
            return taken(pairs);
        });
    }
    /// The same for a pair with the opener of a window. `mate`: 1 if that of the opener is in the window;
    /// `partner_mate`: 1 if that of the partner is.
    [[nodiscard]] double of_opener(unsigned others, unsigned mate, unsigned partner_mate) const {
        return mean_over(others, [&](unsigned whole) {
            if (2 + mate + partner_mate + others + whole > rules_.max_multiplicity) return 0.0;
            return taken({mate, partner_mate, 0, others + whole});
        });
    }

  private:
    [[nodiscard]] double taken(const OtherPairs& pairs) const {
        const double any = 1.0 / (1 + pairs.all());
        switch (rules_.policy) {
            case MultiplesPolicy::remove_multiples:
                return pairs.all() == 0 ? 1 : 0;
            case MultiplesPolicy::take_all_goods:
                return 1;
            case MultiplesPolicy::take_winner_of_goods:
                return mean_share(pairs);
            case MultiplesPolicy::take_if_only_one_good:
                return pairs.certain > 0 ? 0
                                         : std::pow(1 - contents_.good_mate, pairs.mates) *
                                               std::pow(contents_.good_none, pairs.thirds) *
                                               std::pow(1 - contents_.good, pairs.others);
            case MultiplesPolicy::take_winner_if_is_good:
                return any;
            case MultiplesPolicy::take_winner_if_all_are_goods:
                return any * std::pow(contents_.good_mate, pairs.mates) * std::pow(good_both_, pairs.thirds) *
                       std::pow(contents_.good, pairs.others);
        }
        return 0;
    }
    /// Mean of 1 / (1 + the number of good ones).
    [[nodiscard]] double mean_share(const OtherPairs& pairs) const {
        double sum = 0;
        for_each_binomial(pairs.mates, contents_.good_mate, [&](unsigned mates, double chance) {
            const unsigned certain = 1 + pairs.certain + mates;
            const unsigned others = 2 * pairs.thirds + pairs.others;
            if (others > 40) {  // so many that their mean will do
                sum += chance / (certain + others * contents_.good);
                return;
            }
            for_each_binomial(others, contents_.good, [&](unsigned good, double of_others) {
                sum += chance * of_others / (certain + good);
            });
        });
        return sum;
    }
    /// The mean of value(k): k of so many annihilations are in the window with both singles.
    template <class Value>
    [[nodiscard]] double mean_over(unsigned annihilations, Value value) const {
        double sum = 0;
        for_each_binomial(annihilations, whole_,
                          [&](unsigned k, double chance) { sum += chance * value(k); });
        return sum;
    }

    const CoincidenceRules& rules_;
    const WindowContents& contents_;
    const double parted_;  ///< s
    const bool every_;
    const double good_both_;  ///< that both pairs with a third single are good
    double load_;             ///< annihilations with a single in the window, or in both
    double whole_;            ///< part of these of which both are
};

/// A group of n annihilations begins G P(n) times per tick: G = L / (1 + x), and P(n) is that n - 1 follow
/// the opener. It has n - 1 pairs with the opener's annihilation, which is never parted, and (n - 1) (n - 2)
/// / 2 others.
PairChances of_groups(const Windows& windows, double width, double load) {
    const double whole = windows.whole();
    const double parted = windows.parted();
    PairChances chances;
    for (unsigned others = 0; others <= most_others; ++others) {
        const double q0 = windows.of_group(others, 0);
        const double q1 = windows.of_group(others, 1);
        const double q2 = windows.of_group(others, 2);
        // x^(n - 1) / (n - 1)! (n - 1) = x x^(n - 2) / (n - 2)!
        const double with_opener = width / (1 + load) * windows.poisson(others);
        const double without = with_opener * others / 2;
        const double paired = whole * q1 + parted * q0;  // a lone single and a paired one
        chances.lone_lone += 2 * (with_opener + without) * q0;
        chances.lone_paired += with_opener * (paired + q1) + 2 * without * paired;
        chances.paired_paired +=
            2 * with_opener * (whole * q2 + parted * q1) +
            2 * without * (whole * whole * q2 + 2 * whole * parted * q1 + parted * parted * q0);
    }
    return chances;
}

/// Each single opens a window; half of the paired ones have their mate in it.
PairChances of_openers(const Windows& windows, double width) {
    std::array<double, 2> with_lone{};    // [mate]
    std::array<double, 2> with_paired{};  // [mate]
    for (unsigned others = 0; others <= most_others; ++others) {
        for (const unsigned mate : {0U, 1U}) {
            const double windows_of = width * windows.poisson(others);
            const double lone = windows_of * windows.of_opener(others, mate, 0);
            with_lone[mate] += lone;
            with_paired[mate] +=
                windows_of * windows.whole() * windows.of_opener(others, mate, 1) + windows.parted() * lone;
        }
    }
    return {2 * with_lone[0], with_paired[0] + (with_lone[0] + with_lone[1]) / 2,
            with_paired[0] + with_paired[1]};
}

}  // namespace

PairChances pair_chances(const CoincidenceRules& rules, const WindowContents& contents, Kind kind) {
    const Windows windows(rules, contents, kind);
    const double width = window_width(rules);
    return rules.mode == WindowMode::single ? of_groups(windows, width, contents.load)
                                            : of_openers(windows, width);
}

}  // namespace petacq::gpu
