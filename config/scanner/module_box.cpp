#include "config/scanner/module_box.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace petacq::config {

double ModuleBox::reach() const {
    return std::hypot(half[0], half[1], half[2]);
}

std::array<Vector3, 8> ModuleBox::corners() const {
    std::array<Vector3, 8> corners{};
    for (std::size_t corner = 0; corner < corners.size(); ++corner) {
        corners[corner] = middle;
        for (std::size_t axis = 0; axis < 3; ++axis) {
            const double along = (corner >> axis & 1U) != 0 ? half[axis] : -half[axis];
            for (std::size_t i = 0; i < 3; ++i)
                corners[corner][i] += along * axes[axis][i];
        }
    }
    return corners;
}

FaceExtent face_of(const ModuleType& type) {
    FaceExtent face;
    for (const CrystalLayer& layer : type.layers) {
        face.y_low = std::min(face.y_low, layer.y.low());
        face.y_high = std::max(face.y_high, layer.y.high());
        face.z_low = std::min(face.z_low, layer.z.low());
        face.z_high = std::max(face.z_high, layer.z.high());
    }
    return face;
}

ModuleBox box_of(const Module& m, const ModuleType& type) {
    const FaceExtent face = face_of(type);
    ModuleBox box;
    box.axes = {m.along_y, m.along_z, m.outward};
    box.half = {(face.y_high - face.y_low) / 2, (face.z_high - face.z_low) / 2, type.length_mm() / 2};
    for (std::size_t i = 0; i < 3; ++i) {
        box.middle[i] = m.front_mm[i] + (face.y_high + face.y_low) / 2 * m.along_y[i] +
                        (face.z_high + face.z_low) / 2 * m.along_z[i] + type.length_mm() / 2 * m.outward[i];
    }
    return box;
}

// Seen along the axis the box is the convex hull of its corners. The nearest point of a hull lies on the line
// between two corners, and all corners are behind the line at right angles to its direction, unless the axis
// is inside.
double distance_from_axis(const ModuleBox& box) {
    const std::array<Vector3, 8> corners = box.corners();
    double nearest = std::numeric_limits<double>::infinity();
    double x = 0;
    double y = 0;
    for (std::size_t a = 0; a < corners.size(); ++a) {
        for (std::size_t b = a + 1; b < corners.size(); ++b) {
            const double dx = corners[b][0] - corners[a][0];
            const double dy = corners[b][1] - corners[a][1];
            const double square = dx * dx + dy * dy;
            const double towards = -(corners[a][0] * dx + corners[a][1] * dy);
            const double share = square > 0 ? std::clamp(towards / square, 0.0, 1.0) : 0;
            const double here_x = corners[a][0] + share * dx;
            const double here_y = corners[a][1] + share * dy;
            const double distance = std::hypot(here_x, here_y);
            if (distance >= nearest) continue;
            nearest = distance;
            x = here_x;
            y = here_y;
        }
    }
    constexpr double rounding = 1e-9;
    const bool outside = std::all_of(corners.begin(), corners.end(), [&](const Vector3& c) {
        return c[0] * x + c[1] * y >= nearest * nearest * (1 - rounding);
    });
    return outside ? nearest : 0;
}

}  // namespace petacq::config
