#include "config/scanner/rotation.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace petacq::config {

namespace {

constexpr double turn = 2 * std::numbers::pi;

}  // namespace

double within_turn(double radians) {
    const double rest = radians - turn * std::floor(radians / turn);
    return rest < turn ? rest : 0;  // a little below 0 rounds up to a whole turn
}

double Rotation::angle(std::int32_t count) const {
    return within_turn(turn * ((count - count_at_zero) / counts_per_turn));
}

double Rotation::count(double radians) const {
    return std::round(count_at_zero + radians / turn * counts_per_turn);
}

Vector3 turned(const Vector3& at, double radians) {
    const double c = std::cos(radians);
    const double s = std::sin(radians);
    return {c * at[0] - s * at[1], s * at[0] + c * at[1], at[2]};
}

void AngleOverTime::add(std::uint64_t time, std::int32_t count) {
    const double angle = rotation_.angle(count);
    if (tags_.empty()) {
        tags_.push_back({time, angle});
        return;
    }
    const double last = tags_.back().radians;
    // The short way around.
    tags_.push_back({time, last + std::remainder(angle - last, turn)});
}

void AngleOverTime::forget_before(std::uint64_t time) {
    const auto after =
        std::partition_point(tags_.begin(), tags_.end(), [&](const Tag& tag) { return tag.time <= time; });
    if (after - tags_.begin() > 1) tags_.erase(tags_.begin(), after - 1);
}

double AngleOverTime::at(std::uint64_t time) const {
    const auto after =
        std::partition_point(tags_.begin(), tags_.end(), [&](const Tag& tag) { return tag.time <= time; });
    if (after == tags_.begin()) return tags_.front().radians;
    const Tag& before = *(after - 1);
    if (after == tags_.end()) return before.radians;
    const double share =
        static_cast<double>(time - before.time) / static_cast<double>(after->time - before.time);
    return before.radians + share * (after->radians - before.radians);
}

std::uint64_t AngleOverTime::next_tag(std::uint64_t time) const {
    const auto after =
        std::partition_point(tags_.begin(), tags_.end(), [&](const Tag& tag) { return tag.time <= time; });
    return after == tags_.end() ? UINT64_MAX : after->time;
}

}  // namespace petacq::config
