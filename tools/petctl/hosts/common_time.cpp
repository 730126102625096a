#include "tools/petctl/hosts/common_time.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "config/base/seconds_since.hpp"
#include "tools/petctl/text/values.hpp"

namespace petacq::petctl {

using nlohmann::json;

namespace {

constexpr double min_margin_s = 0.5;

}  // namespace

std::optional<double> tick_ps(const TimedStatus& status) {
    for (const HostAnswer& answer : status.answers) {
        const json& tick = at(answer.result(), {"common", "tick_ps"});
        if (tick.is_number() && tick.get<double>() > 0 && std::isfinite(tick.get<double>()))
            return tick.get<double>();
    }
    return std::nullopt;
}

TimedStatus TimedStatus::of(HostGroup& group, const std::vector<std::string>& hosts) {
    const auto asked = std::chrono::steady_clock::now();
    TimedStatus status{group.ask_status(hosts), 0};
    status.seconds = config::seconds_since(asked);
    return status;
}

std::optional<std::uint64_t> ticks_in(double seconds, const TimedStatus& status) {
    const auto tick = tick_ps(status);
    if (!tick) return std::nullopt;
    constexpr double most = 9e18;  // less than 2^63
    return static_cast<std::uint64_t>(std::clamp(std::round(seconds * 1e12 / *tick), 1.0, most));
}

std::optional<std::uint64_t> time_ahead(const TimedStatus& status) {
    double latest = -1;
    for (const HostAnswer& answer : status.answers) {
        const json& watermark = at(answer.result(), {"watermark_s"});
        if (watermark.is_number()) latest = std::max(latest, watermark.get<double>());
    }
    if (latest < 0) return std::nullopt;
    return ticks_in(latest + min_margin_s + 2 * status.seconds, status);
}

}  // namespace petacq::petctl
