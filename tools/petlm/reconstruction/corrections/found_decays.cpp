#include "tools/petlm/reconstruction/corrections/found_decays.hpp"

#include <cmath>
#include <numbers>
#include <utility>

#include "config/base/sum.hpp"

namespace petacq::petlm {

DecaysIn decays_of(const daemon::Coverage& coverage, double half_life_s) {
    const double per_s = half_life_s > 0 ? std::numbers::ln2 / half_life_s : 0;
    return [&coverage, per_s](const gpu::TickRange& range) {
        const double s = static_cast<double>(range.ticks()) * coverage.tick_ps * 1e-12;
        if (per_s == 0) return s;
        return std::exp(-per_s * coverage.since_reference_s(range.start)) * -std::expm1(-per_s * s) / per_s;
    };
}

DecaysIn decays_of(const daemon::Coverage& coverage) {
    return decays_of(coverage, coverage.activity ? coverage.activity->half_life_s : 0);
}

std::vector<double> found_decays(const ScannerAngle& angle, const PartsOfTurn& parts,
                                 const daemon::Coverage& coverage, double half_life_s,
                                 const std::vector<LiveTime>& live) {
    if (!coverage.intervals || coverage.intervals->empty())
        return std::vector<double>(parts.count, 1.0 / static_cast<double>(parts.count));
    std::vector<double> shares(parts.count);
    const DecaysIn decays = decays_of(coverage, half_life_s);
    const auto add = [&](const daemon::Intervals& times, double found) {
        angle.for_each_range(times, parts.most_radians, [&](const gpu::TickRange& range) {
            shares[parts.at(range.start + range.ticks() / 2)] += found * decays(range);
        });
    };
    std::vector<gpu::TickRange> told;
    double ticks = 0;
    double ticks_live = 0;
    for (const LiveTime& one : live) {
        const daemon::Intervals times = coverage.intervals->intersect(one.time);
        add(times, one.live);
        told.push_back(one.time);
        ticks += static_cast<double>(times.ticks());
        ticks_live += one.live * static_cast<double>(times.ticks());
    }
    add(coverage.intervals->without(daemon::Intervals(std::move(told))),
        ticks_live > 0 ? ticks_live / ticks : 1);
    // Nothing was found at all.
    if (!(config::sum_of(shares) > 0)) add(*coverage.intervals, 1);
    const double sum = config::sum_of(shares);
    for (double& share : shares)
        share /= sum;
    return shares;
}

}  // namespace petacq::petlm
