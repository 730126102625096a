#include "tools/geometry/bore.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "config/arrangement.hpp"

namespace petacq::geometry {
namespace {

Bore bore_of_ring(const config::Scanner& scanner) {
    const config::Dimensions& d = scanner.dimensions;
    Bore out;
    out.radius_mm = out.furthest_mm = d.ring_radius_mm;
    out.last_centre_mm = crystal_place(scanner, scanner.geometry.crystal_count() - 1).front_centre_mm[2];
    out.half_length_mm = out.last_centre_mm + d.crystal_pitch_z_mm / 2;
    out.finest_mm = std::min(d.crystal_pitch_y_mm, d.crystal_pitch_z_mm);
    out.coarsest_mm = std::max(d.crystal_pitch_y_mm, d.crystal_pitch_z_mm);
    return out;
}

}  // namespace

Bore bore_of(const config::Scanner& scanner) {
    if (!scanner.arrangement) return bore_of_ring(scanner);
    Bore out;
    out.radius_mm = out.finest_mm = std::numeric_limits<double>::infinity();
    for (const config::Module& module : scanner.arrangement->modules()) {
        double front = 0;
        for (std::size_t axis = 0; axis < 3; ++axis)
            front += module.front_mm[axis] * module.outward[axis];
        out.radius_mm = std::min(out.radius_mm, std::abs(front));
        out.furthest_mm = std::max(out.furthest_mm, std::abs(front));
        for (const config::CrystalLayer& layer : scanner.arrangement->type_of(module).layers) {
            for (const config::CrystalRow* row : {&layer.y, &layer.z}) {
                for (const double size : row->sizes) {
                    out.finest_mm = std::min(out.finest_mm, size);
                    out.coarsest_mm = std::max(out.coarsest_mm, size);
                }
            }
            const double deep = layer.front_mm + layer.length_mm / 2;
            const auto along = [&](double y, double z) {
                return std::abs(module.front_mm[2] + deep * module.outward[2] + y * module.along_y[2] +
                                z * module.along_z[2]);
            };
            for (const double y : {layer.y.centres.front(), layer.y.centres.back()}) {
                for (const double z : {layer.z.centres.front(), layer.z.centres.back()})
                    out.last_centre_mm = std::max(out.last_centre_mm, along(y, z));
            }
            for (const double y : {layer.y.low(), layer.y.high()}) {
                for (const double z : {layer.z.low(), layer.z.high()})
                    out.half_length_mm = std::max(out.half_length_mm, along(y, z));
            }
        }
    }
    return out;
}

}  // namespace petacq::geometry
