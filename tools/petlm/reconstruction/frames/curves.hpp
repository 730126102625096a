// The activity in regions over the frames, as a table and as a picture.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/petlm/reconstruction/frames/plan.hpp"
#include "tools/petlm/reconstruction/frames/regions.hpp"

namespace petacq::frames {

/// What the means of the frames are.
struct CurveValues {
    std::string unit;
    /// [region][frame]; NaN: the frame has no data.
    std::vector<std::vector<double>> means;
    /// Likewise, the standard errors of counting; NaN: not known.
    std::vector<std::vector<double>> errors;
    std::vector<double> recorded_s;  ///< [frame]
};

/// A row for each region and frame.
std::string curves_csv(const FramePlan& plan, const daemon::Coverage& coverage,
                       const std::vector<Region>& regions, const CurveValues& values);
/// Only with cairo (report::with_cairo): a curve for each region. Throws std::runtime_error when cairo fails.
std::string curves_png(const FramePlan& plan, const daemon::Coverage& coverage,
                       const std::vector<Region>& regions, const CurveValues& values);

}  // namespace petacq::frames
