#include "tools/petcal/figures.hpp"

#include <fmt/printf.h>

#include <algorithm>

namespace petacq::petcal {

std::string picture_figure(const GreyPicture& picture, const std::string& caption) {
    return fmt::sprintf(
               R"(<figure><svg viewBox="0 0 %u %u" preserveAspectRatio="none" style="height:12rem">)",
               picture.width, picture.height) +
           fmt::sprintf(R"(<image width="%u" height="%u" preserveAspectRatio="none" href=")", picture.width,
                        picture.height) +
           png_data(picture) + "\"/></svg><figcaption>" + caption + "</figcaption></figure>\n";
}

GreyPicture grey_picture(std::uint32_t width, std::uint32_t height, const std::vector<double>& values,
                         double low, double high) {
    GreyPicture p{width, height, {}};
    for (const double value : values) {
        const double part = std::clamp((value - low) / (high - low), 0.0, 1.0);
        p.pixels.push_back(value >= 0 ? static_cast<std::uint8_t>(30 + 225 * part) : 0);
    }
    return p;
}

}  // namespace petacq::petcal
