#include "daemon/tracking/clock_rate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace petacq::daemon {

namespace {

/// A stream may be sent faster or slower than it was taken. Units differ by more.
constexpr double factor = 5;
constexpr double steady_within = 0.1;

}  // namespace

std::string ClockRate::Wrong::text() const {
    if (ticks_per_s == 0) return "its times stand still";
    return fmt::format("its clock makes {:.3g} ticks a second, {:.3g} are expected", ticks_per_s,
                       expected_per_s);
}

void ClockRate::compare(std::uint64_t progress, std::uint64_t steps, std::int64_t now_ns,
                        double ticks_per_ns) {
    const bool whole = steps == steps_ && progress >= progress_;
    std::optional<double> rate;
    if (whole) rate = static_cast<double>(progress - progress_) / static_cast<double>(now_ns - since_ns_);
    const std::optional<double> before = std::exchange(rate_, rate);
    progress_ = progress;
    steps_ = steps;
    since_ns_ = now_ns;
    wrong_.reset();
    if (!rate || !before) return;
    const bool same = std::abs(*rate - *before) <= steady_within * std::max(*rate, *before);
    if (!same || (*rate * factor >= ticks_per_ns && *rate <= factor * ticks_per_ns)) return;
    wrong_ = latest_ = Wrong{*rate * second_ns, ticks_per_ns * second_ns};
    ++wrong_seconds_;
}

}  // namespace petacq::daemon
