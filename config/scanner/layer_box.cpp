#include "config/scanner/layer_box.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace petacq::config {

namespace {

/// Whether the second layer is directly behind the first and has the same face.
bool continues(const CrystalLayer& a, const CrystalLayer& b) {
    constexpr double same_mm = 1e-6;
    const auto same = [](double p, double q) { return std::abs(p - q) < same_mm; };
    return same(a.front_mm + a.length_mm, b.front_mm) && same(a.y.low(), b.y.low()) &&
           same(a.y.high(), b.y.high()) && same(a.z.low(), b.z.low()) && same(a.z.high(), b.z.high());
}

/// Around layers of one face, from the front of one to the end of another.
LayerBox box_of(const Module& m, const CrystalLayer& front, const CrystalLayer& back) {
    const std::array<double, 3> low = {front.y.low(), front.z.low(), front.front_mm};
    const std::array<double, 3> high = {front.y.high(), front.z.high(), back.front_mm + back.length_mm};
    LayerBox box;
    box.axes = {m.along_y, m.along_z, m.outward};
    box.middle = m.front_mm;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        box.half[axis] = (high[axis] - low[axis]) / 2;
        for (std::size_t i = 0; i < 3; ++i)
            box.middle[i] += (high[axis] + low[axis]) / 2 * box.axes[axis][i];
    }
    return box;
}

}  // namespace

double LayerBox::reach() const {
    return std::hypot(half[0], half[1], half[2]);
}

std::array<Vector3, 8> LayerBox::corners() const {
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

std::vector<LayerBox> boxes_of(const std::vector<Module>& modules, const std::vector<ModuleType>& types) {
    std::vector<LayerBox> boxes;
    for (std::uint32_t m = 0; m < modules.size(); ++m) {
        const std::vector<CrystalLayer>& layers = types[modules[m].type].layers;
        for (std::uint32_t first = 0; first < layers.size();) {
            std::uint32_t end = first + 1;
            while (end < layers.size() && continues(layers[end - 1], layers[end]))
                ++end;
            boxes.push_back(box_of(modules[m], layers[first], layers[end - 1]));
            boxes.back().module = m;
            boxes.back().first_layer = first;
            boxes.back().layers = end - first;
            first = end;
        }
    }
    return boxes;
}

// Seen along the axis the box is the convex hull of its corners. The nearest point of a hull lies on the line
// between two corners, and all corners are behind the line at right angles to its direction, unless the axis
// is inside.
double distance_from_axis(const LayerBox& box) {
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
