#include "tools/petcal/estimate/pairs/efficiencies.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "config/base/error.hpp"
#include "config/median.hpp"
#include "tools/petcal/estimate/pairs/anderson_mixing.hpp"

namespace petacq::estimate {

namespace {

constexpr double step_part = 2.0 / 3;
constexpr double settled_change = 1e-5;  // rms of the relative change
constexpr double max_move = 1;           // of a logarithm

/// Those of the crystals that are seen.
std::vector<double> pick(const std::vector<double>& values, const std::vector<bool>& seen) {
    std::vector<double> out;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (seen[i]) out.push_back(values[i]);
    }
    return out;
}

/// What a step adds to the logarithm of each efficiency; 0 for those that are fixed at 0.
Eigen::ArrayXd change_of(const NetCounts& counts, const std::vector<bool>& seen, const FanSums& fan_sums,
                         const std::vector<double>& efficiency, std::vector<double>& sums) {
    fan_sums(efficiency, sums);
    Eigen::ArrayXd change = Eigen::ArrayXd::Zero(static_cast<Eigen::Index>(efficiency.size()));
    for (std::size_t i = 0; i < efficiency.size(); ++i) {
        if (!seen[i] || !(efficiency[i] > 0)) continue;
        if (!(sums[i] > 0)) throw config::Error("efficiencies: all partners of a crystal are without counts");
        change[static_cast<Eigen::Index>(i)] = step_part * std::log(counts.net[i] / sums[i] / efficiency[i]);
    }
    return change;
}

/// Steps until the rms of the relative changes, weighted with the efficiencies, is small: crystals that are
/// nearly dead do not matter. False when max_steps were not enough.
bool solve(const NetCounts& counts, const std::vector<bool>& seen, const FanSums& fan_sums,
           std::uint32_t max_steps, Efficiencies& out) {
    std::vector<double> sums(out.efficiency.size());
    Eigen::Map<Eigen::ArrayXd> efficiency(out.efficiency.data(),
                                          static_cast<Eigen::Index>(out.efficiency.size()));
    Eigen::ArrayXd logarithm = (efficiency > 0).select(efficiency.log(), 0);
    AndersonMixing mixing;
    while (out.steps < max_steps) {
        ++out.steps;
        const Eigen::ArrayXd change = change_of(counts, seen, fan_sums, out.efficiency, sums);
        const Eigen::ArrayXd before = logarithm;
        mixing.advance(logarithm, change, efficiency, max_move);
        const double moved = std::sqrt(((logarithm - before).square() * efficiency).sum() / efficiency.sum());
        efficiency = (efficiency > 0).select(logarithm.exp(), 0);
        if (moved < settled_change) return true;
    }
    return false;
}

void check(const NetCounts& counts, const std::vector<bool>& seen, const EfficiencyOptions& options,
           Efficiencies& out) {
    out.median_counts = config::median(pick(counts.net, seen));
    if (!(out.median_counts >= options.min_counts))
        throw config::Error("efficiencies: a median of " + std::to_string(std::lround(out.median_counts)) +
                            " net coincidences per crystal; expected at least " +
                            std::to_string(std::lround(options.min_counts)) +
                            ": measure longer, or check the place of the source");
}

void finish(const NetCounts& counts, const std::vector<bool>& seen, const EfficiencyOptions& options,
            Efficiencies& out) {
    const double limit = options.dead_below * config::median(pick(out.efficiency, seen));
    double sum = 0;
    double live = 0;
    out.lowest_counts = std::numeric_limits<double>::infinity();
    for (std::uint32_t i = 0; i < seen.size(); ++i) {
        const bool known = seen[i] && counts.net[i] > 0;
        out.error.push_back(known ? std::sqrt(counts.variance[i]) / counts.net[i]
                                  : std::numeric_limits<double>::infinity());
        if (!seen[i]) {
            out.unseen.push_back(i);
        } else if (out.efficiency[i] < limit) {
            out.dead.push_back(i);
        } else {
            sum += out.efficiency[i];
            live += 1;
            out.lowest_counts = std::min(out.lowest_counts, counts.net[i]);
        }
    }
    for (std::uint32_t i = 0; i < seen.size(); ++i)
        out.efficiency[i] = seen[i] ? out.efficiency[i] * live / sum : 1;
}

}  // namespace

Efficiencies crystal_efficiencies(const NetCounts& counts, const FanSums& fan_sums,
                                  const EfficiencyOptions& options) {
    const std::size_t crystals = counts.net.size();
    if (crystals == 0 || counts.variance.size() != crystals)
        throw std::invalid_argument("crystal_efficiencies: " + std::to_string(crystals) + " counts and " +
                                    std::to_string(counts.variance.size()) + " variances");
    if (!options.start.empty() && options.start.size() != crystals)
        throw std::invalid_argument("crystal_efficiencies: a start of " +
                                    std::to_string(options.start.size()) + " efficiencies");
    Efficiencies out;
    std::vector<double> sums(crystals);
    const std::vector<double> start =
        options.start.empty() ? std::vector<double>(crystals, 1) : options.start;
    fan_sums(start, sums);
    std::vector<bool> seen(crystals);
    double all_counts = 0;
    double all_expected = 0;
    for (std::size_t i = 0; i < crystals; ++i) {
        seen[i] = sums[i] > 0;
        all_counts += seen[i] ? std::max(counts.net[i], 0.0) : 0;
        all_expected += start[i] * sums[i];
    }
    check(counts, seen, options, out);
    const double scale = std::sqrt(all_counts / all_expected);
    for (std::size_t i = 0; i < crystals; ++i)
        out.efficiency.push_back(seen[i] && counts.net[i] > 0 ? scale * start[i] : 0);
    if (!solve(counts, seen, fan_sums, options.max_steps, out))
        throw config::Error(
            "efficiencies: no solution after " + std::to_string(out.steps) +
            " steps: the source is thin, or far from the axis, and does not compare all crystals "
            "with each other; expected one that joins all crystals: a cylinder about as "
            "wide as the objects to be imaged");
    finish(counts, seen, options, out);
    return out;
}

}  // namespace petacq::estimate
