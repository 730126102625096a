// Means of two tracers in regions, with their errors.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tools/petlm/reconstruction/frames/regions.hpp"
#include "tools/petlm/reconstruction/tracers/run_separation.hpp"

namespace petacq::tracers {

struct MeanWithError {
    double mean = 0;
    std::optional<double> error;  ///< one standard deviation, by counting; empty: unknown
};

struct RegionMeans {
    MeanWithError without_gamma;
    MeanWithError with_gamma;
};

/// [region]. `replicates`: images of which the error is the spread; 0: it is unknown.
/// `efficiency_error`: relative, of the efficiency of the separation; it is part of the errors. Throws as
/// RunSeparation::replicate() does.
std::vector<RegionMeans> means_of(const std::vector<frames::Region>& regions, const RunSeparation& separation,
                                  std::uint32_t replicates, double efficiency_error);

}  // namespace petacq::tracers
