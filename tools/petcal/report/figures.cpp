#include "tools/petcal/report/figures.hpp"

#include <fmt/printf.h>

#include <algorithm>
#include <cmath>

#include "config/spectra.hpp"

namespace petacq::petcal {

namespace {

std::string curve_path(const Curve& curve, double most, const char* style) {
    std::string path = fmt::sprintf(R"(<path class="%s" d="M0 100)", style);
    for (std::size_t bin = 0; bin + 1 < curve.size(); ++bin)
        path += fmt::sprintf("L%zu %.1f", bin, 100 - 95 * curve[bin] / most);
    return path + "\"/>";
}

}  // namespace

std::string spectrum_figure(const Curve& curve, const Curve* other, const std::string& caption) {
    double most = 1;
    for (const Curve* one : {&curve, other})
        if (one != nullptr) most = std::max(most, *std::max_element(one->begin(), one->end() - 1));
    std::string out = R"(<figure><svg viewBox="0 0 255 115" role="img">)";
    out += fmt::sprintf(R"(<path class="axis" d="M0 100H255M%.1f 0V100"/>)",
                        511 / config::Spectra::energy_bin_keV);
    out += R"(<text x="128" y="112" text-anchor="middle">511 keV</text>)";
    out += curve_path(curve, most, "curve");
    if (other != nullptr) out += curve_path(*other, most, "other");
    return out + "</svg><figcaption>" + caption + "</figcaption></figure>\n";
}

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
        p.pixels.push_back(std::isnan(value) ? 0 : static_cast<std::uint8_t>(30 + 225 * part));
    }
    return p;
}

std::string crystals_figure(const config::Geometry& geometry, double low, double high,
                            const std::function<double(std::uint32_t)>& value, const std::string& caption) {
    std::vector<double> values;
    for (std::uint32_t crystal = 0; crystal < geometry.crystal_count(); ++crystal)
        values.push_back(value(crystal));
    return picture_figure(grey_picture(geometry.crystals_in_ring(), geometry.rings(), values, low, high),
                          caption);
}

GreyPicture flood_picture(const FloodShape& shape, std::span<const std::uint32_t> flood) {
    const std::uint32_t block = shape.size > 128 ? 2 : 1;
    GreyPicture p{(shape.size + block - 1) / block, (shape.size + block - 1) / block, {}};
    std::vector<double> sums(std::size_t{p.width} * p.height);
    for (std::uint32_t y = 0; y < shape.size; ++y)
        for (std::uint32_t x = 0; x < shape.size; ++x)
            sums[x / block + std::size_t{y / block} * p.width] += flood[x + std::size_t{y} * shape.size];
    std::vector<double> sorted = sums;
    // A few noisy positions must not darken the rest.
    const auto high = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() * 998 / 1000);
    std::nth_element(sorted.begin(), high, sorted.end());
    const double most = std::max(1.0, *high);
    for (const double sum : sums)
        p.pixels.push_back(static_cast<std::uint8_t>(255 * std::sqrt(std::min(1.0, sum / most))));
    return p;
}

}  // namespace petacq::petcal
