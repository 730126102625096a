// How the activity of a source changes in time.
#pragma once

#include <string>
#include <vector>

namespace petacq::sim {

/// A point of a curve: the activity relative to that of the source, at a time since the start.
struct CurvePoint {
    double time_s = 0;
    double share = 1;
};
/// Straight lines between points in order of time; before the first and after the last as there. Empty: 1.
using ActivityCurve = std::vector<CurvePoint>;

/// Throws std::invalid_argument unless times rise and shares are 0 or above, finite, not all 0.
void check_curve(const ActivityCurve& curve);
/// The largest value.
double largest_share(const ActivityCurve& curve);
/// The mean between two times of the curve and the decay together, which is 1 at the start of a curve of 1.
/// At one time, the value there. `half_life_s`: 0: no decay.
double mean_share(const ActivityCurve& curve, double half_life_s, double from_s, double to_s);

/// The points in a CSV file of two columns, time in seconds and share; the first line may be a header.
/// Throws std::invalid_argument that names the file and line.
ActivityCurve curve_from_csv(const std::string& file);

}  // namespace petacq::sim
