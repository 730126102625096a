// Filtered back-projection of a part of an image: NEMA NU 4-2008 asks for it without smoothing.
//
// A. C. Kak, M. Slaney, Principles of Computerized Tomographic Imaging (IEEE Press, 1988), chapter 3.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace petacq::sinogram {

/// Values of lines at angles (row + 0.5) pi / angles and distances (column + 0.5) * width_mm - radius, row by
/// row.
struct Projections {
    std::size_t angles = 0;
    std::size_t radial = 0;
    double width_mm = 0;
    std::vector<double> values;

    [[nodiscard]] double radius_mm() const { return 0.5 * static_cast<double>(radial) * width_mm; }
};

/// A square of size * size points around (x, y), `step_mm` apart, with its axes turned by `angle` from x to
/// y.
struct Patch {
    double x = 0;
    double y = 0;
    double angle = 0;  ///< radians
    double step_mm = 0;
    std::size_t size = 0;  ///< odd
};

/// Line integrals to values per area at the points of the patch, rows along its second axis. With the ramp
/// filter up to the Nyquist frequency of the bins, and linear interpolation between them.
std::vector<double> back_project(const Projections& projections, const Patch& patch);

/// Divides counts by the number of lines in a bin. Bins of an angle that have no lines are interpolated
/// between their neighbours; those at the ends become 0.
Projections normalised(std::size_t angles, std::size_t radial, double width_mm,
                       std::span<const double> counts, std::span<const double> lines);

}  // namespace petacq::sinogram
