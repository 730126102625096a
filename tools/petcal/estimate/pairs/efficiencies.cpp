#include "tools/petcal/estimate/pairs/efficiencies.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "config/base/error.hpp"
#include "config/median.hpp"

namespace petacq::estimate {

namespace {

constexpr double step_part = 2.0 / 3;
constexpr double settled_change = 1e-4;  // rms of the relative change

/// Those of the crystals that are seen.
std::vector<double> pick(const std::vector<double>& values, const std::vector<bool>& seen) {
    std::vector<double> out;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (seen[i]) out.push_back(values[i]);
    }
    return out;
}

/// One step. The rms of the relative changes, weighted with the efficiencies: crystals that are nearly dead
/// do not matter.
double step(const NetCounts& counts, const std::vector<bool>& seen, const FanSums& fan_sums,
            std::vector<double>& efficiency, std::vector<double>& sums) {
    fan_sums(efficiency, sums);
    double changes = 0;
    double total = 0;
    for (std::size_t i = 0; i < efficiency.size(); ++i) {
        if (!seen[i] || !(efficiency[i] > 0)) continue;
        if (!(sums[i] > 0)) throw config::Error("efficiencies: all partners of a crystal are without counts");
        const double next = counts.net[i] / sums[i];
        const double change = step_part * std::log(next / efficiency[i]);
        changes += change * change * efficiency[i];
        total += efficiency[i];
        efficiency[i] *= std::exp(change);
    }
    return std::sqrt(changes / total);
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
    do {
        if (out.steps == options.max_steps)
            throw config::Error(
                "efficiencies: no solution after " + std::to_string(out.steps) +
                " steps: the source is thin, or far from the axis, and does not compare all crystals "
                "with each other; expected one that joins all crystals: a cylinder about as "
                "wide as the objects to be imaged");
        ++out.steps;
    } while (step(counts, seen, fan_sums, out.efficiency, sums) >= settled_change);
    finish(counts, seen, options, out);
    return out;
}

}  // namespace petacq::estimate
