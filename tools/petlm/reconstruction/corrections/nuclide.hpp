// The nuclide of a run: the stated one, or that of the options.
#pragma once

#include <optional>
#include <string>

#include "daemon/coverage/coverage.hpp"

namespace petacq::corrections {

struct NuclideOptions {
    std::optional<std::string> nuclide;     ///< instead of the one that the operator named
    std::optional<double> half_life_s;      ///< of a nuclide that is missing in the table
    std::optional<double> branching_ratio;  ///< its positrons per decay
};

/// Without activity if it is that of the options. Throws UsageError for options that name no nuclide.
std::optional<daemon::StatedActivity> nuclide_of(const daemon::Coverage& coverage,
                                                 const NuclideOptions& options);

/// From positrons per second, the mean over the time that is covered, to the activity at the start of the
/// run; 1 without a nuclide.
double decay_correction(const daemon::Coverage& coverage,
                        const std::optional<daemon::StatedActivity>& nuclide);

}  // namespace petacq::corrections
