#include "tools/petlm/reconstruction/em/angles.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "config/base/sum.hpp"
#include "config/scanner/geometry.hpp"
#include "tools/petlm/base/status.hpp"

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
        const std::uint32_t first =
            crystals_ * angle_of_part_[part_of(config::within_turn(angle_->at(c.time)))];
        c.crystal_a += first;
        c.crystal_b += first;
    }
}

void Angles::add_decays(const daemon::Coverage& coverage, const daemon::Intervals& times, double half_life_s,
                        double live, std::vector<double>& decays) const {
    const double per_s = half_life_s > 0 ? std::numbers::ln2 / half_life_s : 0;
    const double width = whole_turn / static_cast<double>(angle_of_part_.size());
    angle_->for_each_range(times, width / ranges_in_part, [&](const gpu::TickRange& range) {
        const double s = static_cast<double>(range.ticks()) * coverage.tick_ps * 1e-12;
        const double of_range = per_s > 0 ? std::exp(-per_s * coverage.since_reference_s(range.start)) *
                                                -std::expm1(-per_s * s) / per_s
                                          : s;
        decays[angle_of_part_[part_of(config::within_turn(angle_->at(range.start + range.ticks() / 2)))]] +=
            live * of_range;
    });
}

std::vector<double> Angles::shares(const daemon::Coverage& coverage, double half_life_s,
                                   const std::vector<petlm::LiveTime>& live) const {
    if (!turns() || !coverage.intervals || coverage.intervals->empty())
        return std::vector<double>(count(), 1.0 / count());
    std::vector<double> shares(count());
    std::vector<gpu::TickRange> told;
    double ticks = 0;
    double ticks_live = 0;
    for (const petlm::LiveTime& one : live) {
        const daemon::Intervals times = coverage.intervals->intersect(one.time);
        add_decays(coverage, times, half_life_s, one.live, shares);
        told.push_back(one.time);
        ticks += static_cast<double>(times.ticks());
        ticks_live += one.live * static_cast<double>(times.ticks());
    }
    // Where nothing is known to have been found, all times count alike.
    add_decays(coverage, coverage.intervals->without(daemon::Intervals(std::move(told))), half_life_s,
               ticks_live > 0 ? ticks_live / ticks : 1, shares);
    if (!(config::sum_of(shares) > 0)) add_decays(coverage, *coverage.intervals, half_life_s, 1, shares);
    const double sum = config::sum_of(shares);
    for (double& share : shares)
        share /= sum;
    return shares;
}

}  // namespace petacq::image
