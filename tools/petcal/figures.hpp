// Pictures and tables of the reports.
#pragma once

#include <string>
#include <vector>

#include "tools/petcal/png.hpp"

namespace petacq::petcal {

/// A figure of the full width of its place, whatever the shape of the picture, with a caption (HTML).
std::string picture_figure(const GreyPicture& picture, const std::string& caption);

/// Values row by row from the top, `low` dark and `high` bright; black where one is below 0 or not a number.
GreyPicture grey_picture(std::uint32_t width, std::uint32_t height, const std::vector<double>& values,
                         double low, double high);

}  // namespace petacq::petcal
