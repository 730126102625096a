// A cylinder with its axis along z, and the part of a ray inside it.
#pragma once

#include <optional>

#include "tools/petsim/physics/ray.hpp"

namespace petacq::sim {

struct Cylinder {
    Vector3 at{};  ///< its centre, mm
    double radius_mm = 0;
    double length_mm = 0;

    [[nodiscard]] bool contains(const Vector3& point) const {
        const double x = point[0] - at[0];
        const double y = point[1] - at[1];
        const double z = point[2] - at[2];
        return x * x + y * y <= radius_mm * radius_mm && 2 * (z < 0 ? -z : z) <= length_mm;
    }
};

/// Distances along a ray, mm.
struct Chord {
    double from;
    double to;
};
/// The part of the ray inside the cylinder, from its start on: 0 <= from < to. Absent if there is none.
std::optional<Chord> chord(const Cylinder& cylinder, const Ray& ray);

}  // namespace petacq::sim
