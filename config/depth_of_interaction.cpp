#include "config/depth_of_interaction.hpp"

#include <fmt/format.h>

#include "config/base/error.hpp"
#include "config/crystal_material.hpp"

namespace petacq::config {

DepthOfInteraction::DepthOfInteraction(const Dimensions& dimensions)
    : length_mm_(dimensions.crystal_length_mm),
      per_mm_(crystal_material(dimensions).attenuation_per_cm / 10),
      typical_mm_(0) {
    typical_mm_ = mm(1, 2 * dimensions.ring_radius_mm);
}

DepthOfInteraction DepthOfInteraction::of(const Dimensions& dimensions, std::optional<double> mm) {
    if (!mm) return DepthOfInteraction(dimensions);
    const double length = dimensions.crystal_length_mm;
    if (!(*mm >= 0 && *mm <= length)) {
        throw Error(
            fmt::format("--depth-mm: expected 0 to {} (the length of a crystal), found {}", length, *mm));
    }
    return fixed(*mm);
}

std::string DepthOfInteraction::name() const {
    return is_fixed() ? fmt::format("{:g}", typical_mm_)
                      : fmt::format("absorption at {:g} per cm", 10 * per_mm_);
}

std::string DepthOfInteraction::text() const {
    return fmt::format("{:.3g} mm behind the front face", typical_mm_) +
           (is_fixed() ? "" : " on lines through the axis, less at an angle, as the crystals absorb them");
}

LineGeometry::LineGeometry(const Scanner& scanner, const DepthOfInteraction& depth_of) : depth(depth_of) {
    for (std::uint32_t crystal = 0; crystal < scanner.geometry.crystal_count(); ++crystal)
        places.push_back(crystal_place(scanner, crystal));
}

}  // namespace petacq::config
