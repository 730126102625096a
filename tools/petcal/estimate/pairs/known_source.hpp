// A source of known shape, and where pairs of photons on a line through it come from.
#pragma once

#include <optional>

#include "config/scanner/scanner.hpp"

namespace petacq::estimate {

using config::Vector3;

/// Even activity in a cylinder of any direction, from the middle of one end to that of the other. With both
/// ends at the same place it is a sphere. A point is a small sphere, a line a thin cylinder: their radius
/// should then be about one crystal pitch, since lines between the centres of crystals pass beside them.
struct KnownSource {
    Vector3 from{};  ///< mm
    Vector3 to{};
    double radius_mm = 0;
};

/// The part of a line that lies in the source, mm from the start of the line.
struct Chord {
    double begin_mm = 0;
    double end_mm = 0;
};

/// Of the straight line between two different points. Absent where it misses the source.
std::optional<Chord> chord_of(const KnownSource& source, const Vector3& start, const Vector3& end);

/// How much longer the way to `b` is than that to `a`, in the mean over the annihilations on the line between
/// them. These lie evenly on its chord, whatever attenuates the pairs: the loss is the same everywhere on a
/// line. So the mean is that of the middle of the chord, and the standard deviation chord / sqrt(3). Absent
/// where the line misses the source: such pairs are scattered or random.
std::optional<double> path_difference_mm(const KnownSource& source, const Vector3& a, const Vector3& b);

}  // namespace petacq::estimate
