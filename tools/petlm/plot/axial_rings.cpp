#include "tools/petlm/plot/axial_rings.hpp"

#include <algorithm>
#include <cmath>

#include "config/shape/extent.hpp"

namespace petacq::petlm {

AxialRings::AxialRings(const config::Scanner& scanner) : pitch_(config::extent_of(scanner).axial_pitch_mm) {
    const std::uint32_t crystals = scanner.geometry.crystal_count();
    const auto z = [&](std::uint32_t crystal) {
        return config::crystal_place(scanner, crystal).front_centre_mm[2];
    };
    ring_of_.reserve(crystals);
    if (scanner.is_ring()) {
        const std::uint32_t in_ring = scanner.geometry.crystals_in_ring();
        for (std::uint32_t crystal = 0; crystal < crystals; ++crystal)
            ring_of_.push_back(crystal / in_ring);
        for (std::uint32_t ring = 0; ring < scanner.geometry.rings(); ++ring)
            z_.push_back(z(ring * in_ring));
        return;
    }
    constexpr double max_rings = 1U << 16U;
    std::vector<double> of_crystals;
    of_crystals.reserve(crystals);
    for (std::uint32_t crystal = 0; crystal < crystals; ++crystal)
        of_crystals.push_back(z(crystal));
    const auto ends = std::minmax_element(of_crystals.begin(), of_crystals.end());
    const double low = *ends.first;
    const double high = *ends.second;
    const double width = std::max(pitch_, (high - low) / max_rings);
    // Crystals on an edge go to the same side whatever the rounding.
    const auto ring = [&](double mm) {
        return static_cast<std::uint32_t>(std::floor((mm - low) / width + 0.5 + 1e-6));
    };
    for (std::uint32_t i = 0; i <= ring(high); ++i)
        z_.push_back(low + i * width);
    for (const double mm : of_crystals)
        ring_of_.push_back(ring(mm));
}

}  // namespace petacq::petlm
