#include "tools/petcal/report/figures.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "config/energy_bins.hpp"

namespace petacq::petcal {

std::string spectrum_figure(const Curve& curve, const Curve* other, const std::string& caption) {
    const auto shown = [](const Curve& all) { return Curve(all.begin(), all.end() - 1); };
    const Curve behind = other != nullptr ? shown(*other) : Curve();
    constexpr double range = config::energy_bin_keV * (config::energy_bins - 1);
    return report::curve_figure(shown(curve), other != nullptr ? &behind : nullptr, {511 / range, "511 keV"},
                                caption);
}

std::string crystals_figure(const config::Geometry& geometry, double low, double high,
                            const std::function<double(std::uint32_t)>& value, const std::string& caption) {
    std::vector<double> values;
    for (std::uint32_t crystal = 0; crystal < geometry.crystal_count(); ++crystal)
        values.push_back(value(crystal));
    return report::picture_figure(
        report::grey_picture(geometry.crystals_in_ring(), geometry.rings(), values, low, high), caption);
}

report::GreyPicture flood_picture(const FloodShape& shape, std::span<const std::uint32_t> flood) {
    const std::uint32_t block = shape.size > 128 ? 2 : 1;
    report::GreyPicture p{(shape.size + block - 1) / block, (shape.size + block - 1) / block, {}};
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
