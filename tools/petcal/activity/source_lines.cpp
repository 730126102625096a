#include "tools/petcal/activity/source_lines.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "config/base/error.hpp"
#include "tools/geometry/bore.hpp"
#include "tools/petsim/physics/ray.hpp"

namespace petacq::petcal {
namespace {

constexpr std::size_t cylinder_parts = 10;
constexpr double near_in_crystals = 3;  // widths of crystals

}  // namespace

SourceLines::SourceLines(const config::Scanner& scanner, const std::vector<double>& point,
                         const std::vector<double>& cylinder)
    : geometry_(scanner, config::DepthOfInteraction::of(scanner, std::nullopt)),
      near_mm_(near_in_crystals * geometry::bore_of(scanner).coarsest_mm) {
    const bool is_point = !point.empty();
    const std::vector<double>& at = is_point ? point : cylinder;
    if (at.size() != (is_point ? 3 : 5) ||
        !std::all_of(at.begin(), at.end(), [](double v) { return std::isfinite(v); }))
        throw config::Error("--by-coincidence: expected --point X,Y,Z or --cylinder X,Y,Z,RADIUS,LENGTH");
    middle_ = {at[0], at[1], at[2]};
    if (is_point) return;
    radius_mm_ = at[3];
    length_mm_ = at[4];
    if (!(radius_mm_ > 0 && length_mm_ > 0))
        throw config::Error("--cylinder: expected a radius and a length above 0");
}

std::size_t SourceLines::parts() const {
    return is_point() ? 1 : cylinder_parts;
}

double SourceLines::volume_ml() const {
    return std::numbers::pi * radius_mm_ * radius_mm_ * length_mm_ * 1e-3;
}

SourceLines::Place SourceLines::place(std::uint32_t a, std::uint32_t b) const {
    const config::LineEnds ends = geometry_.ends(a, b);
    config::Vector3 along{};
    config::Vector3 from{};
    double squares = 0;
    double towards = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        along[axis] = ends.b[axis] - ends.a[axis];
        from[axis] = middle_[axis] - ends.a[axis];
        // A cylinder lies along z: the nearest place across it.
        if (axis == 2 && !is_point()) continue;
        squares += along[axis] * along[axis];
        towards += along[axis] * from[axis];
    }
    const double share = towards / squares;
    const double x = share * along[0] - from[0];
    const double y = share * along[1] - from[1];
    const double z = share * along[2] - from[2];
    std::size_t part = 0;
    double distance = std::hypot(x, y, z);
    if (!is_point()) {
        const double at = std::floor((z / length_mm_ + 0.5) * cylinder_parts);
        if (!(at >= 0 && at < cylinder_parts)) return {};
        part = static_cast<std::size_t>(at);
        distance = std::hypot(x, y) - radius_mm_;
    }
    if (distance < near_mm_) return {part, Zone::near};
    return {part, distance >= 2 * near_mm_ && distance < 4 * near_mm_ ? Zone::around : Zone::elsewhere};
}

config::Vector3 SourceLines::draw(sim::Random& random) const {
    config::Vector3 at = middle_;
    if (is_point()) return at;
    const double distance = radius_mm_ * std::sqrt(random.uniform());
    const sim::Azimuth around = sim::azimuth(random);
    at[0] += distance * around.c;
    at[1] += distance * around.s;
    at[2] += length_mm_ * (random.uniform() - 0.5);
    return at;
}

}  // namespace petacq::petcal
