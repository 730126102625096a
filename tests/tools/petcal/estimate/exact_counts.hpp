// Counts without scatter, for tests of the fit of a normalisation.
#pragma once

#include <cstddef>
#include <vector>

#include "tools/petcal/estimate/pairs/normalise.hpp"
#include "tools/petcal/estimate/pairs/scan_model.hpp"

namespace petacq::test {

/// As the model expects, so many in all.
inline estimate::LineCounts exact_counts(const estimate::ScanModel& model,
                                         const std::vector<double>& efficiency,
                                         const estimate::GeometricFactors& factors, double total) {
    const estimate::PairSums sums = model.sums(efficiency, factors, 2);
    estimate::LineCounts counts(model);
    double all = 0;
    for (const double sum : sums.transaxial)
        all += sum;
    counts.total = total;
    const auto take = [&](estimate::NetCounts& to, const std::vector<double>& from) {
        for (std::size_t i = 0; i < from.size(); ++i)
            to.net[i] = to.variance[i] = total / all * from[i];
    };
    take(counts.transaxial, sums.transaxial);
    take(counts.axial, sums.axial);
    take(counts.parts, sums.parts);
    std::vector<double> fans = sums.fans;
    for (std::size_t i = 0; i < fans.size(); ++i)
        fans[i] *= efficiency[i];
    take(counts.crystals, fans);
    return counts;
}

}  // namespace petacq::test
