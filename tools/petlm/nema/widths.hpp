// The widths of a response function, by NEMA NU 4-2008.
#pragma once

#include <optional>
#include <span>

namespace petacq::nema {

/// In the unit of `step`.
struct Widths {
    double peak = 0;    ///< place of the largest value of the parabola
    double height = 0;  ///< that value
    double fwhm = 0;
    double fwtm = 0;  ///< NaN if the values do not fall to a tenth on both sides
};

/// Of values at 0, step, 2 step, ... The height is that of the parabola through the largest value and its two
/// neighbours; the edges at a half and a tenth of it are found by linear interpolation between neighbouring
/// values. Nothing if the largest value is at an end or not above 0, or if the values do not fall to a half
/// on both sides.
std::optional<Widths> widths_of(std::span<const double> values, double step);

}  // namespace petacq::nema
