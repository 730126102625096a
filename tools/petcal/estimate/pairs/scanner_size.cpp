#include "tools/petcal/estimate/pairs/scanner_size.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "config/scanner/arrangement.hpp"

namespace petacq::estimate {

ScannerSize size_of(const config::Scanner& scanner) {
    const std::uint32_t crystals = scanner.geometry.crystal_count();
    const double first = crystal_place(scanner, 0).front_centre_mm[2];
    if (scanner.is_ring()) {
        const config::Dimensions& d = scanner.dimensions;
        return {d.ring_radius_mm,
                d.crystal_pitch_y_mm,
                d.crystal_pitch_z_mm,
                d.crystal_length_mm,
                first,
                crystal_place(scanner, crystals - 1).front_centre_mm[2]};
    }
    constexpr double infinite = std::numeric_limits<double>::infinity();
    ScannerSize out{infinite, 0, 0, infinite, first, first};
    for (const config::ModuleType& type : scanner.arrangement->types()) {
        for (const config::CrystalLayer& layer : type.layers) {
            out.pitch_y_mm =
                std::max(out.pitch_y_mm, *std::max_element(layer.y.sizes.begin(), layer.y.sizes.end()));
            out.pitch_z_mm =
                std::max(out.pitch_z_mm, *std::max_element(layer.z.sizes.begin(), layer.z.sizes.end()));
            out.length_mm = std::min(out.length_mm, layer.length_mm);
        }
    }
    for (std::uint32_t i = 0; i < crystals; ++i) {
        const config::Vector3 p = crystal_place(scanner, i).front_centre_mm;
        out.inner_radius_mm = std::min(out.inner_radius_mm, std::hypot(p[0], p[1]));
        out.low_mm = std::min(out.low_mm, p[2]);
        out.high_mm = std::max(out.high_mm, p[2]);
    }
    return out;
}

}  // namespace petacq::estimate
