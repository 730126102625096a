#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "config/base/ticks.hpp"
#include "daemon/coverage/unknown.hpp"
#include "daemon/system/utc.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/import/declared/declaration.hpp"
#include "tools/petlm/records/interval/in_seconds.hpp"

namespace petacq::petlm {
namespace {

/// Files state times to a millisecond.
constexpr std::chrono::milliseconds same_time{1};
constexpr double same_duration_s = 1e-3;

std::optional<daemon::Intervals> told_times(const Declaration& d) {
    return d.file.times ? d.file.times : d.coverage.intervals;
}

void set_times(Declaration& d, std::uint64_t start, std::uint64_t length) {
    if (length == 0) throw UsageError("--duration-s: expected a number of s above 0, at least one tick");
    if (start > UINT64_MAX - length) throw UsageError("--start-ticks: expected an end below 2^64 ticks");
    const gpu::TickRange range{start, start + length};
    d.coverage.intervals = range;
    d.limits.times = range;
    d.declared["duration_s"] = static_cast<double>(length) * d.coverage.tick_ps * 1e-12;
    d.declared["start_ticks"] = start;
    d.now_known(daemon::unknown_times);
}

void declare_duration(Declaration& d) {
    const Declared& said = d.said;
    const auto told = told_times(d);
    const double tick_s = d.coverage.tick_ps * 1e-12;
    if (!said.duration_s) {
        if (said.start_ticks && !told) {
            throw UsageError(
                "--start-ticks: the file does not tell for how long it measured; expected --duration-s, "
                "too");
        }
    } else {
        const std::uint64_t length = option_ticks("--duration-s", *said.duration_s, config::TimeUnit::s,
                                                  d.coverage.tick_ps, config::Rounding::nearest);
        if (!told) {
            set_times(d, said.start_ticks.value_or(0), length);
            return;
        }
        const double seconds = static_cast<double>(told->ticks()) * tick_s;
        if (std::abs(seconds - static_cast<double>(length) * tick_s) > same_duration_s)
            d.contradicts("--duration-s " + *said.duration_s, fmt::format("{:.9g} s", seconds));
    }
    if (said.start_ticks && told->span().start != *said.start_ticks) {
        d.contradicts(fmt::format("--start-ticks {}", *said.start_ticks),
                      fmt::format("that it begins at tick {}", told->span().start));
    }
}

void declare_start(Declaration& d) {
    if (!d.said.start_utc) return;
    const auto utc = daemon::utc_time(*d.said.start_utc);
    if (!utc) {
        throw UsageError(fmt::format(
            "--start-utc {}: expected a time such as 2026-11-20T18:45:00Z or 2026-11-20T19:45:00+01:00",
            *d.said.start_utc));
    }
    const auto times = told_times(d);
    if (!times || times->empty()) {
        throw UsageError(
            "--start-utc: the file does not tell when its records begin; expected --duration-s, too (and "
            "--start-ticks, unless they begin at 0)");
    }
    const std::uint64_t first = times->span().start;
    if (const auto told = d.coverage.anchor ? d.coverage.utc_of(first) : std::nullopt) {
        if (*told - *utc > same_time || *utc - *told > same_time)
            d.contradicts("--start-utc " + *d.said.start_utc, daemon::utc_text(*told));
        return;
    }
    d.coverage.anchor = daemon::TimeAnchor{first, *utc};
    d.declared["start_utc"] = daemon::utc_text(*utc);
    d.now_known(daemon::unknown_clock);
}

}  // namespace

void declare_times(Declaration& d) {
    declare_duration(d);
    declare_start(d);
}

}  // namespace petacq::petlm
