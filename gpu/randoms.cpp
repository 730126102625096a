#include "gpu/randoms.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "gpu/window_load.hpp"

namespace petacq::gpu {

namespace {

double sum_of(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0);
}

/// The mean |dt| of the trues. That of randoms, whose dt is equally often any of -tau to tau, is
/// tau (tau + 1) / (2 tau + 1).
double mean_abs_dt(const IntervalSums& sums, const CoincidenceRules& rules, double randoms) {
    double abs_dt = 0;  // of both ends
    for (const PromptEnds& module : sums.modules)
        abs_dt += static_cast<double>(module.abs_dt);
    const double tau = rules.window;
    const double trues = static_cast<double>(sums.counts.prompts) - randoms;
    if (trues <= 0) return 0;
    return std::clamp((abs_dt / 2 - randoms * tau * (tau + 1) / (2 * tau + 1)) / trues, 0.0, tau);
}

}  // namespace

RandomsEstimator::RandomsEstimator(const config::Geometry& geometry, const CoincidenceRules& rules)
    : rules_(rules), pairs_(geometry, rules) {
    by_pair_.lone.resize(geometry.crystal_count());
    by_pair_.paired.resize(geometry.crystal_count());
    singles_.resize(geometry.crystal_count());
}

/// A mate lies opposite, up to a sixth of the ring away from there: an object does not fill the ring. A third
/// single may lie anywhere.
void RandomsEstimator::find_good_others(WindowContents& contents) const {
    const std::vector<double> singles = by_module(singles_);
    const auto modules = static_cast<std::uint32_t>(singles.size());
    const PairRule& rule = pairs_.rule();
    const auto good = [&](std::uint32_t a, std::uint32_t b) { return rule.geometry_good({0, a}, {0, b}); };
    const auto opposite = [&](std::uint32_t a, std::uint32_t b) {
        const std::uint32_t apart = 2 * (a > b ? a - b : b - a);  // in half modules
        return 3 * (apart > modules ? apart - modules : modules - apart) <= modules;
    };
    double mates = 0;
    double good_mates = 0;
    double thirds = 0;
    double good_with_none = 0;
    for (std::uint32_t a = 0; a < modules; ++a) {
        for (std::uint32_t b = 0; b < modules; ++b) {
            if (!good(a, b)) continue;
            for (std::uint32_t c = 0; c < modules; ++c) {
                const double weight = singles[a] * singles[b] * singles[c];
                thirds += weight;
                if (!good(a, c) && !good(b, c)) good_with_none += weight;
                if (!good(b, c) || !opposite(b, c)) continue;
                mates += weight;
                if (good(a, c)) good_mates += weight;
            }
        }
    }
    if (mates > 0) contents.good_mate = std::clamp(good_mates / mates, 0.0, 1.0);
    if (thirds > 0) contents.good_none = std::clamp(good_with_none / thirds, 0.0, 1.0);
}

std::vector<double> RandomsEstimator::by_module(const std::vector<double>& crystals) const {
    const PairRule& rule = pairs_.rule();
    std::vector<double> modules(rule.modules);
    for (std::size_t i = 0; i < crystals.size(); ++i)
        modules[i % rule.crystals_in_ring / rule.crystals_per_module] += crystals[i];
    return modules;
}

void RandomsEstimator::find_rates(const IntervalSums& sums, double load) {
    const bool single = rules_.mode == WindowMode::single;
    const double alone = std::exp(load) * (single ? 1 + load : 1);
    for (std::size_t i = 0; i < singles_.size(); ++i) {
        const double unpaired = sums.unpaired[i] / by_pair_.ticks * alone;
        singles_[i] = (static_cast<double>(sums.unpaired[i]) + sums.grouped[i]) / by_pair_.ticks;
        by_pair_.lone[i] = single ? unpaired : 2 * unpaired - singles_[i];
        by_pair_.paired[i] = singles_[i] - by_pair_.lone[i];
    }
}

void RandomsEstimator::estimate(const IntervalSums& sums, std::uint64_t ticks, ExpectedRandoms& out) {
    WindowContents contents;
    contents.load = window_load(rules_, sums.counts, ticks);
    by_pair_.ticks = static_cast<double>(std::max<std::uint64_t>(ticks, 1));
    find_rates(sums, contents.load);
    pairs_.products(by_pair_.lone, of_lone_);
    pairs_.products(by_pair_.paired, of_paired_);
    pairs_.products(singles_, of_singles_);

    const double singles = sum_of(singles_);
    const double annihilations = contents.load / window_width(rules_);
    if (annihilations > 0) contents.lone = std::clamp(sum_of(by_pair_.lone) / annihilations, 0.0, 1.0);
    if (singles > 0) contents.good = std::clamp(2 * of_singles_.total / (singles * singles), 0.0, 1.0);
    find_good_others(contents);
    // The mean |dt| of the trues needs the randoms, on which it has little influence.
    contents.abs_dt = mean_abs_dt(sums, rules_, total(pair_chances(rules_, contents, Kind::prompt)));
    by_pair_.chances = pair_chances(rules_, contents, Kind::prompt);

    // A_i B_j + B_i A_j = (A + B)_i (A + B)_j - A_i A_j - B_i B_j
    const PairChances& c = by_pair_.chances;
    out = {};
    out.add(of_singles_, c.lone_paired * by_pair_.ticks);
    out.add(of_lone_, (c.lone_lone - c.lone_paired) * by_pair_.ticks);
    out.add(of_paired_, (c.paired_paired - c.lone_paired) * by_pair_.ticks);
    delayeds_weight_ = find_delayeds_weight(sums.counts, contents);
}

double RandomsEstimator::total(const PairChances& c) const {
    const double mixed = of_singles_.total - of_lone_.total - of_paired_.total;
    return by_pair_.ticks *
           (c.lone_lone * of_lone_.total + c.lone_paired * mixed + c.paired_paired * of_paired_.total);
}

double RandomsEstimator::find_delayeds_weight(const SingleCounts& counts,
                                              const WindowContents& contents) const {
    if (!rules_.delay) return 0;
    if (rules_.delayeds == DelayedRule::delayed_window) {
        // Prompts lie in 2 tau + 1 ticks, delayeds in 2 (tau + 1).
        return (2.0 * rules_.window + 1) / (2.0 * rules_.window + 2);
    }
    const double delayeds = total(pair_chances(rules_, contents, Kind::delayed));
    const std::uint64_t free = counts.groups - counts.groups_blocked;
    if (delayeds <= 0 || free == 0) return 1;
    // Groups on free time stand for all of them.
    return total(by_pair_.chances) / delayeds * static_cast<double>(counts.groups) /
           static_cast<double>(free);
}

}  // namespace petacq::gpu
