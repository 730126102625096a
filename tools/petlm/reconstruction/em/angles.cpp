#include "tools/petlm/reconstruction/em/angles.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "config/scanner/geometry.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/reconstruction/corrections/found_decays.hpp"

namespace petacq::image {
namespace {

constexpr double whole_turn = 2 * std::numbers::pi;
constexpr std::uint32_t none = UINT32_MAX;
constexpr double ranges_in_part = 8;  // into which time is divided

/// At the edge of the image a part is half a voxel wide.
std::size_t parts_of_turn(const Grid& grid, std::uint32_t crystals) {
    const double radius = grid.voxel_mm * std::max(grid.n[0], grid.n[1]) / 2;
    const double wanted = std::ceil(2 * whole_turn * radius / grid.voxel_mm);
    return std::clamp<std::size_t>(static_cast<std::size_t>(wanted), 1, config::max_crystals / crystals);
}

}  // namespace

Angles::Angles(const petlm::ExportSource& source, const config::Scanner& scanner, const Grid& grid)
    : crystals_(scanner.geometry.crystal_count()) {
    if (!scanner.rotation) return;
    if (!source.coverage().intervals) {
        throw petlm::BadInput(source.target().string() +
                              ": the scanner turns, and the file does not tell the times of its records");
    }
    angle_.emplace(source.target(), source.coverage(), *scanner.rotation);
    const std::size_t parts = parts_of_turn(grid, crystals_);
    angle_of_part_.resize(parts, none);
    struct Mean {
        double ticks = 0;
        double radians = 0;  ///< from the begin of the part, times ticks
    };
    std::vector<Mean> means(parts);
    const double width = whole_turn / static_cast<double>(parts);
    angle_->for_each_range(
        *source.coverage().intervals, width / ranges_in_part, [&](const gpu::TickRange& range) {
            const double middle = config::within_turn(angle_->at(range.start + range.ticks() / 2));
            const std::size_t part = part_of(middle);
            const auto ticks = static_cast<double>(range.ticks());
            means[part].ticks += ticks;
            means[part].radians += ticks * (middle - static_cast<double>(part) * width);
        });
    radians_.clear();
    for (std::size_t part = 0; part < parts; ++part) {
        if (means[part].ticks == 0) continue;
        angle_of_part_[part] = count();
        radians_.push_back(static_cast<double>(part) * width + means[part].radians / means[part].ticks);
    }
    if (radians_.empty()) radians_.push_back(0);
    // A record right beside a range may be in a part that no middle of a range was in.
    for (std::size_t part = 0; part < parts; ++part) {
        if (angle_of_part_[part] != none) continue;
        const auto apart = [&](double radians) {
            return std::abs(std::remainder(radians - (static_cast<double>(part) + 0.5) * width, whole_turn));
        };
        angle_of_part_[part] = static_cast<std::uint32_t>(
            std::min_element(radians_.begin(), radians_.end(),
                             [&](double a, double b) { return apart(a) < apart(b); }) -
            radians_.begin());
    }
}

std::size_t Angles::part_of(double radians) const {
    const auto part =
        static_cast<std::size_t>(radians / whole_turn * static_cast<double>(angle_of_part_.size()));
    return std::min(part, angle_of_part_.size() - 1);
}

void Angles::number(std::span<gpu::Coincidence> records) const {
    if (!turns()) return;
    for (gpu::Coincidence& c : records) {
        const std::uint32_t first = crystals_ * angle_at(c.time);
        c.crystal_a += first;
        c.crystal_b += first;
    }
}

std::vector<double> Angles::shares(const daemon::Coverage& coverage, double half_life_s,
                                   const std::vector<petlm::LiveTime>& live) const {
    if (!turns()) return {1};
    const double width = whole_turn / static_cast<double>(angle_of_part_.size());
    return petlm::found_decays(
        *angle_, {count(), width / ranges_in_part, [this](std::uint64_t time) { return angle_at(time); }},
        coverage, half_life_s, live);
}

}  // namespace petacq::image
