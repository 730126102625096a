#include "tools/petlm/export/geometry/ring_places.hpp"

#include <algorithm>
#include <cmath>

namespace petacq::petlm {

std::uint32_t ring_count(const config::Geometry& g) {
    if (g.is_ring()) return g.rings();
    std::uint32_t last = 0;
    for (const auto& crystal : g.pairs->crystals)
        last = std::max(last, crystal.ring);
    return last + 1;
}

std::vector<double> ring_places_mm(const config::Scanner& scanner) {
    const config::Geometry& g = scanner.geometry;
    std::vector<double> z(ring_count(g));
    for (std::uint32_t crystal = 0; crystal < g.crystal_count();) {
        const std::uint32_t ring =
            g.is_ring() ? crystal / g.crystals_in_ring() : g.pairs->crystals[crystal].ring;
        z[ring] = config::crystal_place(scanner, crystal).front_centre_mm[2];
        crystal += g.is_ring() ? g.crystals_in_ring() : 1;
    }
    return z;
}

double inner_radius_mm(const config::Scanner& scanner) {
    if (scanner.is_ring()) return scanner.dimensions.ring_radius_mm;
    double nearest = INFINITY;
    for (std::uint32_t crystal = 0; crystal < scanner.geometry.crystal_count(); ++crystal) {
        const auto front = config::crystal_place(scanner, crystal).front_centre_mm;
        nearest = std::min(nearest, std::hypot(front[0], front[1]));
    }
    return nearest;
}

double axial_extent_mm(const config::Scanner& scanner, const CrystalKinds& kinds) {
    if (scanner.is_ring()) {
        return 2 * std::abs(config::crystal_place(scanner, 0).front_centre_mm[2]) +
               scanner.dimensions.crystal_pitch_z_mm;
    }
    double end = 0;
    for (std::uint32_t crystal = 0; crystal < scanner.geometry.crystal_count(); ++crystal) {
        const double z = config::crystal_place(scanner, crystal).front_centre_mm[2];
        end = std::max(end, std::abs(z) + kinds.kinds()[kinds.kind_of(crystal)].z_mm / 2);
    }
    return 2 * end;
}

}  // namespace petacq::petlm
