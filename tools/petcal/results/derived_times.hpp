// Time offsets that were derived, and how well they fit.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "config/base/constants.hpp"
#include "tools/petcal/estimate/pairs/time_offsets.hpp"

namespace petacq::petcal {

struct DerivedTimes {
    estimate::TimeOffsets offsets;
    std::uint64_t prompts = 0;  ///< read; no more than are of use
    std::uint64_t missed = 0;   ///< of these, their line misses the source
    double tick_ps = 0;
    /// Mean variance of the time differences that the extent of the source makes.
    double source_ps2 = 0;
    /// Time resolution of a pair; 0: it is hidden by the extent of the source.
    [[nodiscard]] double fwhm_ps() const;
    /// Of some pairs: time difference less what the path difference makes, before and after.
    std::vector<double> before_ps;
    std::vector<double> after_ps;
};

/// Which BDMs are in each group of crystals that pairs join: "BDMs 0 to 3; BDMs 4 to 7". A BDM with crystals
/// of several groups is in each.
std::string groups_text(const config::Geometry& geometry, const estimate::TimeOffsets& offsets);

/// How many prompts the offsets should have, if they have fewer; else empty.
std::string advice_on_prompts(const DerivedTimes& times);

inline double DerivedTimes::fwhm_ps() const {
    const double all_ps2 = offsets.sigma_ticks * tick_ps * offsets.sigma_ticks * tick_ps;
    // Where the source makes most of the width, the rest is uncertain.
    return source_ps2 < 0.8 * all_ps2 ? std::sqrt(all_ps2 - source_ps2) * config::fwhm_per_sigma : 0;
}

}  // namespace petacq::petcal
