#include "tools/petlm/reconstruction/frames/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "config/base/error.hpp"
#include "config/base/ticks.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/reconstruction/frames/automatic.hpp"

namespace petacq::frames {
namespace {

using petlm::UsageError;

constexpr std::size_t max_frames = 1000;
constexpr std::uint64_t most_beyond = 100;  // a frame may reach this part of its length beyond the records

[[noreturn]] void refuse_item(std::string_view item) {
    throw UsageError(fmt::format(
        "--schedule: expected auto, or lengths of frames in s, min or h such as 10x10s,5x60s,2x1.5min,1h, "
        "found '{}'",
        item));
}

/// "10s", "1.5min", "1h".
std::uint64_t length_of(std::string_view item, double tick_ps) {
    const std::size_t digits = std::min(item.find_first_not_of("0123456789."), item.size());
    const std::string_view unit = item.substr(digits);
    const std::uint64_t factor = unit == "s" ? 1 : unit == "min" ? 60 : unit == "h" ? 3600 : 0;
    if (digits == 0 || factor == 0) refuse_item(item);
    std::uint64_t ticks = 0;
    try {
        ticks = config::ticks_of(std::string(item.substr(0, digits)), config::TimeUnit::s, tick_ps,
                                 config::Rounding::up);
    } catch (const config::Error&) {
        refuse_item(item);
    }
    if (ticks == 0 || ticks > (UINT64_MAX >> 1U) / factor / max_frames) refuse_item(item);
    return ticks * factor;
}

std::vector<gpu::TickRange> ranges_of(std::uint64_t start, const std::vector<std::uint64_t>& lengths) {
    std::vector<gpu::TickRange> out;
    for (const std::uint64_t length : lengths) {
        out.push_back({start, start + length});
        start += length;
    }
    return out;
}

FramePlan plan_by_gates(const petlm::FrameOptions& options, const petlm::ExportSource& source,
                        double tick_ps) {
    if (!options.channel)
        throw UsageError("--gates: expected --channel, the channel of the triggers or of the gate");
    if (options.injection_s) throw UsageError("--injection-s: expected --schedule, found --gates");
    const petlm::PhaseOptions phases{*options.channel, *options.gates, options.shortest_s, options.longest_s};
    petlm::check_phases(phases, "--gates");
    const double tick_s = tick_ps * 1e-12;
    const petlm::Cycles cycles = petlm::cycles_of(source.target(), source.coverage(), phases, tick_s);
    FramePlan plan;
    plan.gates = Gates{phases.channel, cycles.accepted().size(), cycles.rejected(),
                       cycles.mean_period() * tick_s, cycles.spread_of_period() * tick_s};
    for (std::uint32_t bin = 0; bin < phases.bins; ++bin) {
        const daemon::Intervals times = cycles.times_of(bin, phases.bins);
        plan.list.push_back({times.span(), daemon::part_of(source.coverage(), times)});
    }
    plan.sentences.push_back(fmt::format(
        "Each frame is one of {} phases of {} cycles of channel {}, of {:.6g} s (spread {:.3g} s); "
        "{} cycles were rejected.",
        phases.bins, cycles.accepted().size(), phases.channel, plan.gates->period_s, plan.gates->spread_s,
        cycles.rejected()));
    return plan;
}

/// Where the first frame begins, if the user says so.
std::optional<std::uint64_t> stated_injection(const petlm::FrameOptions& options,
                                              const daemon::Coverage& coverage) {
    if (!options.injection_s) return std::nullopt;
    const double s = *options.injection_s;
    const gpu::TickRange span = coverage.span();
    const double ticks = static_cast<double>(coverage.reference_ticks()) + s * 1e12 / coverage.tick_ps;
    if (!(ticks >= 0 && ticks < static_cast<double>(span.end))) {
        throw UsageError(
            fmt::format("--injection-s: expected up to {:.9g} s from the start of the run, where "
                        "the records end, found {}",
                        coverage.since_reference_s(span.end), s));
    }
    return static_cast<std::uint64_t>(std::llround(ticks));
}

}  // namespace

std::vector<std::uint64_t> lengths_of(const std::string& schedule, double tick_ps) {
    std::vector<std::uint64_t> out;
    std::string_view rest = schedule;
    for (;;) {
        const std::string_view item = rest.substr(0, rest.find(','));
        const std::size_t times = item.find('x');
        std::size_t count = 1;
        if (times != std::string_view::npos) {
            const auto [end, error] = std::from_chars(item.data(), item.data() + times, count);
            if (error != std::errc() || end != item.data() + times || count == 0) refuse_item(item);
        }
        if (count > max_frames - out.size())
            throw UsageError(fmt::format("--schedule: expected at most {} frames", max_frames));
        const std::string_view length = times == std::string_view::npos ? item : item.substr(times + 1);
        out.insert(out.end(), count, length_of(length, tick_ps));
        if (item.size() == rest.size()) return out;
        rest.remove_prefix(item.size() + 1);
    }
}

FramePlan plan_of(const petlm::FrameOptions& options, const petlm::ExportSource& source, double tick_ps) {
    if (options.schedule.has_value() == options.gates.has_value())
        throw UsageError("expected either --schedule or --gates");
    const daemon::Coverage& coverage = source.coverage();
    if (!coverage.intervals || coverage.open_ticks) {
        throw petlm::BadInput(source.target().string() +
                              ": it is not known which times its records cover; expected a run, a cut or a "
                              "phase that tells");
    }
    if (coverage.intervals->empty())
        throw petlm::BadInput(source.target().string() + ": covers no time, so there are no frames");
    if (options.gates) return plan_by_gates(options, source, tick_ps);
    if (options.channel || options.shortest_s || options.longest_s)
        throw UsageError("--channel, --shortest-s, --longest-s: expected --gates, found --schedule");
    FramePlan plan;
    plan.injection = stated_injection(options, coverage);
    std::vector<gpu::TickRange> ranges;
    const gpu::TickRange span = coverage.span();
    if (*options.schedule == "auto") {
        ranges = automatic_frames(source, plan);
    } else {
        ranges = ranges_of(plan.injection.value_or(span.start), lengths_of(*options.schedule, tick_ps));
    }
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        // Boards stop within a moment of the end of a run.
        const std::uint64_t within = daemon::Intervals(span).ticks_in(ranges[i]);
        if (within == 0 || ranges[i].ticks() - within > ranges[i].ticks() / most_beyond) {
            throw UsageError(fmt::format(
                "--schedule: frame {} is from {:.9g} to {:.9g} s; expected frames from {:.9g} to {:.9g} s "
                "after the start of the run, between which there are records",
                i + 1, coverage.since_reference_s(ranges[i].start), coverage.since_reference_s(ranges[i].end),
                coverage.since_reference_s(span.start), coverage.since_reference_s(span.end)));
        }
        plan.list.push_back({ranges[i], daemon::part_of(coverage, ranges[i])});
    }
    return plan;
}

}  // namespace petacq::frames
