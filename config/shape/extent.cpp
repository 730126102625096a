#include "config/shape/extent.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace petacq::config {

namespace {

constexpr double unknown = std::numeric_limits<double>::infinity();
/// The cosine of 45 degrees: a direction with a smaller one to an axis lies more across it than along it.
constexpr double half_way = 0.7071067811865476;

double pitch_of(const CrystalRow& row) {
    double pitch = unknown;
    for (std::size_t i = 1; i < row.centres.size(); ++i)
        pitch = std::min(pitch, row.centres[i] - row.centres[i - 1]);
    return pitch;
}

double size_of(const CrystalRow& row) {
    return *std::min_element(row.sizes.begin(), row.sizes.end());
}

/// From the origin to the line between two points, in the plane across the axis.
double distance_to(const Vector3& from, const Vector3& to) {
    const double x = to[0] - from[0];
    const double y = to[1] - from[1];
    const double squares = x * x + y * y;
    const double part = squares > 0 ? std::clamp(-(from[0] * x + from[1] * y) / squares, 0.0, 1.0) : 0;
    return std::hypot(from[0] + part * x, from[1] + part * y);
}

Vector3 point_of(const Module& m, double depth, double y, double z) {
    Vector3 point{};
    for (std::size_t i = 0; i < point.size(); ++i)
        point[i] = m.front_mm[i] + depth * m.outward[i] + y * m.along_y[i] + z * m.along_z[i];
    return point;
}

/// From the axis to the nearest edge of the front face of a layer.
double distance_to(const Module& m, const CrystalLayer& layer) {
    const std::array<Vector3, 4> corners = {point_of(m, layer.front_mm, layer.y.low(), layer.z.low()),
                                            point_of(m, layer.front_mm, layer.y.high(), layer.z.low()),
                                            point_of(m, layer.front_mm, layer.y.high(), layer.z.high()),
                                            point_of(m, layer.front_mm, layer.y.low(), layer.z.high())};
    double nearest = unknown;
    for (std::size_t i = 0; i < corners.size(); ++i)
        nearest = std::min(nearest, distance_to(corners.at(i), corners.at((i + 1) % corners.size())));
    return nearest;
}

/// To the furthest middle of a crystal, at this depth behind the front of the module.
double furthest(const Module& m, const CrystalLayer& layer, double depth) {
    double radius = 0;
    for (const double y : {layer.y.centres.front(), layer.y.centres.back()}) {
        for (const double z : {layer.z.centres.front(), layer.z.centres.back()}) {
            const Vector3 point = point_of(m, depth, y, z);
            radius = std::max(radius, std::hypot(point[0], point[1]));
        }
    }
    return radius;
}

/// The size of a crystal where it has no neighbours.
double known(double pitch, double size) {
    return pitch < unknown ? pitch : size;
}

}  // namespace

Extent extent_of(const Scanner& scanner) {
    if (scanner.is_ring()) {
        const Dimensions& d = scanner.dimensions;
        return {d.ring_radius_mm, d.ring_radius_mm, d.ring_radius_mm + d.crystal_length_mm,
                d.crystal_pitch_y_mm, d.crystal_pitch_z_mm};
    }
    Extent e{unknown, 0, 0, unknown, unknown};
    double around = unknown;  // smallest crystal in either direction
    double along = unknown;
    double ends = unknown;  // nearest of those that face along the axis
    for (const Module& m : scanner.arrangement->modules()) {
        const bool turned = std::abs(m.along_y[2]) > half_way;
        for (const CrystalLayer& layer : scanner.arrangement->type_of(m).layers) {
            const CrystalRow& across = turned ? layer.z : layer.y;
            const CrystalRow& axial = turned ? layer.y : layer.z;
            e.transaxial_pitch_mm = std::min(e.transaxial_pitch_mm, pitch_of(across));
            e.axial_pitch_mm = std::min(e.axial_pitch_mm, pitch_of(axial));
            around = std::min(around, size_of(across));
            along = std::min(along, size_of(axial));
            double& nearest = faces_along_axis(m) ? ends : e.bore_radius_mm;
            nearest = std::min(nearest, distance_to(m, layer));
            e.front_radius_mm = std::max(e.front_radius_mm, furthest(m, layer, layer.front_mm));
            e.outer_radius_mm = std::max({e.outer_radius_mm, furthest(m, layer, layer.front_mm),
                                          furthest(m, layer, layer.front_mm + layer.length_mm)});
        }
    }
    if (!(e.bore_radius_mm < unknown)) e.bore_radius_mm = ends;
    e.transaxial_pitch_mm = known(e.transaxial_pitch_mm, around);
    e.axial_pitch_mm = known(e.axial_pitch_mm, along);
    return e;
}

bool faces_along_axis(const Module& module) {
    return std::abs(module.outward[2]) > half_way;
}

}  // namespace petacq::config
