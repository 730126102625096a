#include <cmath>
#include <numbers>
#include <stdexcept>

#include "config/scanner/arrangement.hpp"
#include "config/scanner/scanner.hpp"

namespace petacq::config {

CrystalPlace crystal_place(const Scanner& scanner, std::uint32_t crystal) {
    if (scanner.arrangement) return scanner.arrangement->place(crystal);
    const Geometry& g = scanner.geometry;
    const Dimensions& d = scanner.dimensions;
    if (crystal >= g.crystal_count()) {
        throw std::out_of_range("crystal " + std::to_string(crystal) + " of a scanner with " +
                                std::to_string(g.crystal_count()));
    }
    const std::uint32_t in_ring = crystal % g.crystals_in_ring();
    const std::uint32_t ring = crystal / g.crystals_in_ring();

    const auto along_y = [&](std::uint32_t y) {
        const std::uint32_t block = y / g.crystals.y;
        return y * d.crystal_pitch_y_mm + block * d.block_gap_y_mm;
    };
    const std::uint32_t per_module_y = g.crystals_per_module_y();
    const double tangential = along_y(in_ring % per_module_y) - along_y(per_module_y - 1) / 2;

    const auto along_z = [&](std::uint32_t z) {
        const std::uint32_t block = z / g.crystals.z;
        const std::uint32_t module = block / g.blocks.z;
        return z * d.crystal_pitch_z_mm + (block - module) * d.block_gap_z_mm + module * d.module_gap_z_mm;
    };
    const double axial = along_z(ring) - along_z(g.rings() - 1) / 2;

    const std::uint32_t module_in_ring = in_ring / per_module_y;
    const double angle = 2 * std::numbers::pi * module_in_ring / g.modules_in_ring();
    const double c = std::cos(angle);
    const double s = std::sin(angle);
    CrystalPlace place{};
    place.front_centre_mm = {d.ring_radius_mm * c - tangential * s, d.ring_radius_mm * s + tangential * c,
                             axial};
    place.outward = {c, s, 0};
    return place;
}

CrystalPlace turned(const CrystalPlace& place, double radians) {
    return {turned(place.front_centre_mm, radians), turned(place.outward, radians)};
}

Vector3 point_at_depth(const CrystalPlace& place, double depth_mm) {
    Vector3 point = place.front_centre_mm;
    for (std::size_t i = 0; i < point.size(); ++i)
        point[i] += depth_mm * place.outward[i];
    return point;
}

}  // namespace petacq::config
