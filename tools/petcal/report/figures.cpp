#include "tools/petcal/report/figures.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "config/energy_bins.hpp"
#include "config/scanner/arrangement.hpp"

namespace petacq::petcal {

std::string spectrum_figure(const Curve& curve, const Curve* other, const std::string& caption) {
    const auto shown = [](const Curve& all) { return Curve(all.begin(), all.end() - 1); };
    const Curve behind = other != nullptr ? shown(*other) : Curve();
    constexpr double range = config::energy_bin_keV * (config::energy_bins - 1);
    return report::curve_figure(shown(curve), other != nullptr ? &behind : nullptr, {511 / range, "511 keV"},
                                caption);
}

namespace {

/// Module by module from left to right and from the top, layers side by side: columns from left to right,
/// rows downwards.
report::GreyPicture modules_picture(const config::Arrangement& arrangement, double low, double high,
                                    const std::function<double(std::uint32_t)>& value) {
    std::vector<std::uint32_t> first_column;  // [type][layer] one after the other
    std::vector<std::size_t> first_layer;     // [type]
    std::uint32_t width = 0;
    std::uint32_t height = 0;
    for (const config::ModuleType& type : arrangement.types()) {
        first_layer.push_back(first_column.size());
        std::uint32_t columns = 0;
        for (const config::CrystalLayer& layer : type.layers) {
            first_column.push_back(columns);
            columns += layer.y.count() + 1;
            height = std::max(height, layer.z.count() + 1);
        }
        width = std::max(width, columns);
    }
    const std::size_t modules = arrangement.modules().size();
    const auto across = static_cast<std::uint32_t>(std::clamp(
        std::sqrt(2.0 * static_cast<double>(modules) * height / width), 1.0, static_cast<double>(modules)));
    const auto down = static_cast<std::uint32_t>((modules + across - 1) / across);
    std::vector<double> values(std::size_t{across} * width * down * height, no_value);
    for (std::uint32_t crystal = 0; crystal < arrangement.crystal_count(); ++crystal) {
        const config::CrystalAddress at = arrangement.address(crystal);
        const std::uint32_t type = arrangement.modules()[at.module].type;
        const std::size_t x =
            at.module % across * width + first_column[first_layer[type] + at.layer] + at.column;
        const std::size_t y = at.module / across * height + at.row;
        values[y * across * width + x] = value(crystal);
    }
    return report::grey_picture(across * width, down * height, values, low, high);
}

}  // namespace

std::string crystals_order(const config::Scanner& scanner) {
    return scanner.is_ring() ? "One row for each ring, ring 0 at the top"
                             : "Module by module from left to right and from the top; the layers of a module "
                               "side by side";
}

std::string crystals_figure(const config::Scanner& scanner, double low, double high,
                            const std::function<double(std::uint32_t)>& value, const std::string& caption) {
    if (!scanner.is_ring())
        return report::picture_figure(modules_picture(*scanner.arrangement, low, high, value), caption);
    const config::Geometry& geometry = scanner.geometry;
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
