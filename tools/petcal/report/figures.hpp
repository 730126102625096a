// Figures that the reports share: HTML with pictures inside.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "config/geometry.hpp"
#include "tools/petcal/derive/flood.hpp"
#include "tools/petcal/report/png.hpp"

namespace petacq::petcal {

/// Counts by bin of config::Spectra; the last bin is not shown.
using Curve = std::vector<double>;

/// A spectrum from 0 to 1020 keV, with a line at 511 keV; a second one in another colour. `caption` is HTML.
std::string spectrum_figure(const Curve& curve, const Curve* other, const std::string& caption);

/// A figure of the full width of its place, whatever the shape of the picture, with a caption (HTML).
std::string picture_figure(const GreyPicture& picture, const std::string& caption);

/// Values row by row from the top: dark at `low`, white at `high`, black where there is none.
GreyPicture grey_picture(std::uint32_t width, std::uint32_t height, const std::vector<double>& values,
                         double low, double high);

/// In grey_picture() and crystals_figure(): there is no value.
inline constexpr double no_value = std::numeric_limits<double>::quiet_NaN();

/// All crystals, one row for each ring, ring 0 at the top; dark at `low`, white at `high`, black without a
/// value. `value`: of a crystal number. `caption` is HTML.
std::string crystals_figure(const config::Geometry& geometry, double low, double high,
                            const std::function<double(std::uint32_t)>& value, const std::string& caption);

/// The flood map, brighter as the square root of its counts; large maps at half their size.
GreyPicture flood_picture(const FloodShape& shape, std::span<const std::uint32_t> flood);

}  // namespace petacq::petcal
