// Figures that are drawn by the browser: curves, and grey pictures.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tools/report/png.hpp"

namespace petacq::report {

/// Counts in bins of equal width.
using Curve = std::vector<double>;

/// Where a vertical line stands in a figure of curves, as a part of its width, and labels below the axis.
struct CurveAxis {
    double mark = 0.5;
    std::string at_mark = {};
    std::string left = {};
    std::string right = {};
};
/// `other`: a second curve behind the first, in another colour, or null. `caption` is HTML.
std::string curve_figure(const Curve& curve, const Curve* other, const CurveAxis& axis,
                         const std::string& caption);

/// In grey_picture(): there is no value.
inline constexpr double no_value = std::numeric_limits<double>::quiet_NaN();
/// Values row by row from the top: dark at `low`, white at `high`, black where there is none.
GreyPicture grey_picture(std::uint32_t width, std::uint32_t height, const std::vector<double>& values,
                         double low, double high);

/// A figure of the full width of its place, whatever the shape of the picture. `caption` is HTML.
std::string picture_figure(const GreyPicture& picture, const std::string& caption);
/// A square figure, `size` units wide, with SVG elements above the picture. `title` is text.
std::string square_figure(const GreyPicture& picture, std::uint32_t size, const std::string& title,
                          const std::string& above, const std::string& caption);

}  // namespace petacq::report
