#include "tools/petlm/reconstruction/gammas/positions.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace petacq::gammas {
namespace {

constexpr double even_radius = 0.9;  // of half the width of the grid: these positions are inside the bore

}  // namespace

Positions::Positions(const corrections::Activity& activity) : grid_(activity.grid) {
    double sum = 0;
    for (const float value : activity.of_voxel)
        until_.push_back(sum += std::max(0.0, static_cast<double>(value)));
}

config::Vector3 Positions::in_activity(sim::Random& random) const {
    const auto found = std::upper_bound(until_.begin(), until_.end() - 1, random.uniform() * until_.back());
    const auto voxel = static_cast<std::size_t>(found - until_.begin());
    const std::array<std::size_t, 3> cell = {voxel % grid_.n[0], voxel / grid_.n[0] % grid_.n[1],
                                             voxel / grid_.n[0] / grid_.n[1]};
    config::Vector3 at{};
    for (std::size_t axis = 0; axis < 3; ++axis)
        at[axis] = grid_.low(axis) + (static_cast<double>(cell[axis]) + random.uniform()) * grid_.voxel_mm;
    return at;
}

config::Vector3 Positions::anywhere(sim::Random& random) const {
    const double radius = even_radius * std::min(-grid_.low(0), -grid_.low(1));
    const double r = radius * std::sqrt(random.uniform());
    const double angle = 2 * std::numbers::pi * random.uniform();
    return {r * std::cos(angle), r * std::sin(angle), -grid_.low(2) * random.symmetric()};
}

}  // namespace petacq::gammas
