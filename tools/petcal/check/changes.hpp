// What has changed in the detector between two runs of the same source.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "tools/petcal/check/daily_run.hpp"

namespace petacq::petcal {

struct Change {
    double size = 0;
    double error = std::numeric_limits<double>::infinity();  ///< standard deviation; infinite: unknown

    [[nodiscard]] bool known() const { return error < std::numeric_limits<double>::infinity(); }
};

/// The median of those that are known; unknown if they are fewer than half.
Change median_of(std::span<const Change> changes);

/// Crystals are ordered by detector unit, one unit after the other (first_of_unit() in base/units.hpp).
struct DetectorChanges {
    std::vector<Change> photopeaks;   ///< [crystal] relative
    std::vector<Change> resolutions;  ///< [unit] relative, of the FWHM
    std::vector<bool> lost_peaks;     ///< [crystal] has no clear photopeak any more
    std::vector<Change> singles;      ///< [crystal] relative, of its share
    std::vector<bool> silent;         ///< [unit] no longer counts
    /// [module] relative, of the singles of its crystals that are neither dead nor noisy, less what a source
    /// that has moved makes of them; unknown with fewer than 8 modules around the ring.
    std::vector<Change> efficiencies;
    std::vector<Change> spots;    ///< [unit] largest displacement, in distances of spots
    std::vector<Change> times;    ///< [module] ns; later ones positive
    std::vector<Change> prompts;  ///< [module] relative, to those that its singles and partners let expect
};

/// The activity may differ: counts are compared as shares. Throws config::Error if the data of either run are
/// insufficient.
DetectorChanges changes_between(const DailyRun& reference, const DailyRun& run);

}  // namespace petacq::petcal
