#include "tools/petlm/export/recorded_time.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>

#include "daemon/system/utc.hpp"
#include "tools/petlm/records/covered_seconds.hpp"

namespace petacq::petlm {

namespace {

std::string milliseconds_of(std::chrono::system_clock::time_point utc) {
    const auto since_epoch = std::chrono::floor<std::chrono::milliseconds>(utc.time_since_epoch()).count();
    return fmt::format(".{:03} UTC", ((since_epoch % 1000) + 1000) % 1000);
}

}  // namespace

daemon::Coverage completed_coverage(const ExportSource& source) {
    daemon::Coverage coverage = source.coverage();
    coverage.loss.live = live_share(source.target(), coverage);
    if (!coverage.intervals && source.records() != 0)
        coverage.intervals = gpu::TickRange{source.first_time(), source.last_time() + 1};
    return coverage;
}

RecordedTime::RecordedTime(const daemon::Coverage& coverage) : coverage_(coverage) {
    if (!coverage_.intervals) coverage_.intervals.emplace();
    std::uint64_t before = 0;
    for (const gpu::TickRange& range : coverage_.intervals->ranges()) {
        starts_.push_back(range.start);
        before_.push_back(before);
        before += range.ticks();
    }
    // Multiplied first: the product is exact as long as it fits, so whole milliseconds stay whole.
    const double ms = std::ceil(static_cast<double>(coverage_.ticks()) * coverage_.tick_ps / 1e9);
    length_ms_ = std::max<std::uint64_t>(static_cast<std::uint64_t>(std::clamp(ms, 0.0, 0x1p62)), 1);
    if (before != 0) share_ = static_cast<double>(coverage_.ticks()) / static_cast<double>(before);
}

double RecordedTime::start_s() const {
    return starts_.empty() ? 0 : std::max(0.0, coverage_.since_reference_s(starts_.front()));
}

std::uint64_t RecordedTime::start_ms() const {
    return static_cast<std::uint64_t>(start_s() * 1000);
}

std::uint64_t RecordedTime::milliseconds(std::uint64_t time) const {
    if (starts_.empty() || time <= starts_.front()) return start_ms();
    const auto at = static_cast<std::size_t>(std::upper_bound(starts_.begin(), starts_.end(), time) -
                                             starts_.begin() - 1);
    const gpu::TickRange& range = coverage_.intervals->ranges()[at];
    const std::uint64_t recorded = before_[at] + std::min(time, range.end) - range.start;
    const std::uint64_t reference = std::min(coverage_.reference_ticks(), starts_.front());
    const double ticks = share_ == 1 ? static_cast<double>(starts_.front() - reference + recorded)
                                     : static_cast<double>(starts_.front() - reference) +
                                           static_cast<double>(recorded) * share_;
    const double ms = std::min(ticks * coverage_.tick_ps / 1e9, 0x1p62);
    return std::clamp(static_cast<std::uint64_t>(ms), start_ms(), end_ms() - 1);
}

std::string time_sentence(const RecordedTime& time) {
    if (!time.has_gaps()) return "Times are milliseconds from the start of the run.";
    return "Times are milliseconds from the start of the run to the first recorded time, and from there of "
           "recorded time: the gaps between the intervals are left out.";
}

TextRows coverage_rows(const daemon::Coverage& coverage) {
    TextRows rows;
    const auto ticks_text = [&](std::uint64_t ticks) {
        return fmt::format("{} ticks ({:.6g} ns)", ticks,
                           static_cast<double>(ticks) * coverage.tick_ps * 1e-3);
    };
    const auto moment = [&](const std::string& name, std::uint64_t tick) {
        if (const auto utc = coverage.utc_of(tick))
            rows.emplace_back(name, daemon::utc_text(*utc, "%Y-%m-%d %H:%M:%S") + milliseconds_of(*utc));
    };
    const gpu::TickRange span = coverage.span();
    moment("start of the run", coverage.reference_ticks());
    if (span.ticks() != 0) {
        if (span.start != coverage.reference_ticks()) moment("first recorded time", span.start);
        moment("end of the recorded time", span.end);
        const std::size_t count = coverage.intervals->ranges().size();
        rows.emplace_back("recorded time", fmt::format("{:.9g} s", coverage.seconds()));
        rows.emplace_back(count == 1 ? "interval" : fmt::format("{} intervals", count),
                          fmt::format("from {:.9g} s to {:.9g} s after the start of the run; ticks {} to {}",
                                      coverage.since_reference_s(span.start),
                                      coverage.since_reference_s(span.end), span.start, span.end));
    } else if (coverage.intervals) {
        rows.emplace_back("recorded time", "none");
    }
    if (coverage.activity) {
        rows.emplace_back("decay of " + coverage.activity->nuclide,
                          fmt::format("{:.9g} times the mean over the recorded time is the activity at "
                                      "the start",
                                      coverage.decay_factor(coverage.activity->half_life_s)));
    }
    if (const auto activity = coverage.activity_MBq_at(coverage.reference_ticks()))
        rows.emplace_back("activity at the start", fmt::format("{:.6g} MBq", *activity));
    if (const auto& c = coverage.rules.coincidence) {
        rows.emplace_back("coincidence window", ticks_text(c->window_ticks));
        rows.emplace_back("window mode", config::name_of(c->window_mode));
        rows.emplace_back("multiples", config::name_of(c->multiples_policy));
        if (c->min_module_difference)
            rows.emplace_back("min_module_difference", std::to_string(*c->min_module_difference));
        if (c->max_ring_difference)
            rows.emplace_back("max_ring_difference", std::to_string(*c->max_ring_difference));
        if (c->delay_ticks) rows.emplace_back("delay", ticks_text(*c->delay_ticks));
    }
    if (const auto& e = coverage.rules.energy) {
        rows.emplace_back("energy window", e->filter ? fmt::format("{} to {} keV", e->lower_keV, e->upper_keV)
                                                     : std::string("none"));
    }
    if (const auto& g = coverage.rules.gammas) {
        rows.emplace_back("gamma window", fmt::format("{} to {} keV", g->lower_keV, g->upper_keV));
        rows.emplace_back("gammas before the pair", "up to " + ticks_text(g->before_ticks));
        rows.emplace_back("gammas after the pair", "up to " + ticks_text(g->after_ticks));
        rows.emplace_back("gamma policy", config::name_of(g->policy));
        rows.emplace_back("delay of gammas", g->delay_ticks ? ticks_text(*g->delay_ticks) : "none");
    }
    rows.emplace_back("data that arrived", coverage.loss.live
                                               ? fmt::format("{:.6g} %", 100 * *coverage.loss.live)
                                               : std::string("not known as a share of this part"));
    if (!coverage.loss.seconds_complete)
        rows.emplace_back("seconds", "they do not cover all of the recorded time");
    for (const std::string& what : coverage.unknown)
        rows.emplace_back("not known", what);
    return rows;
}

}  // namespace petacq::petlm
