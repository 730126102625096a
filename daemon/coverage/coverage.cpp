#include "daemon/coverage/coverage.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <span>

#include "config/base/sha256.hpp"
#include "config/scanner/meaning_of_records.hpp"

namespace petacq::daemon {

namespace {

using nlohmann::json;

/// Differences of the clocks of hosts, and of a host and the boards in a long run, that are no contradiction.
constexpr double largest_clock_difference_s = 60;

/// The difference of two times may exceed what the clock's own duration holds, so it is computed in seconds.
double seconds_between(std::chrono::system_clock::time_point from, std::chrono::system_clock::time_point to) {
    using std::chrono::floor;
    using std::chrono::seconds;
    const seconds whole = floor<seconds>(to).time_since_epoch() - floor<seconds>(from).time_since_epoch();
    const auto rest = (to - floor<seconds>(to)) - (from - floor<seconds>(from));
    return std::chrono::duration<double>(whole).count() + std::chrono::duration<double>(rest).count();
}

void check_alike(const Coverage& a, const Coverage& b) {
    const auto expect = [](bool same, const std::string& what) {
        if (!same) throw CoverageError(what);
    };
    const auto known_alike = [](const std::string& x, const std::string& y) {
        return x.empty() || y.empty() || x == y;
    };
    expect(a.tick_ps == b.tick_ps, fmt::format("their ticks differ: {} and {} ps", a.tick_ps, b.tick_ps));
    expect(known_alike(a.origin.scanner_sha256, b.origin.scanner_sha256), "their scanners differ");
    const std::string difference = difference_of(a.rules, b.rules);
    expect(difference.empty(), "their records were made by different rules: " + difference);
    if (a.anchor && b.anchor) {
        const auto utc = a.utc_of(b.anchor->ticks);
        const double apart = utc ? seconds_between(*utc, b.anchor->utc) : largest_clock_difference_s * 2;
        expect(std::abs(apart) <= largest_clock_difference_s,
               fmt::format("their detector times have different zeros: by the time of day they lie {:.6g} s "
                           "apart",
                           apart));
    }
}

/// With the times of each, where the file is known to say when.
std::vector<OriginRun> runs_with_times(const Coverage& of) {
    std::vector<OriginRun> runs = of.origin.runs;
    for (OriginRun& run : runs)
        if (!run.times) run.times = of.intervals;
    return runs;
}

/// A run without records in the file is none of its runs, unless the file is empty. The only one has the
/// times of the file.
void keep_those_with_times(std::vector<OriginRun>& runs) {
    const auto has_none = [](const OriginRun& run) { return run.times && run.times->empty(); };
    if (!std::all_of(runs.begin(), runs.end(), has_none)) std::erase_if(runs, has_none);
    if (runs.size() == 1) runs.front().times.reset();
}

/// `runs` of both: each once.
std::vector<OriginRun> runs_of_both(const Coverage& a, const Coverage& b) {
    std::vector<OriginRun> runs = runs_with_times(a);
    for (const OriginRun& more : runs_with_times(b)) {
        const auto same = std::find_if(runs.begin(), runs.end(), [&](const OriginRun& run) {
            return run.run_id == more.run_id && run.directory == more.directory;
        });
        if (same == runs.end()) {
            runs.push_back(more);
        } else {
            same->times =
                same->times && more.times ? std::optional(same->times->unite(*more.times)) : std::nullopt;
        }
    }
    return runs;
}

void add_origin(Origin& to, const Origin& more) {
    if (to.scanner_sha256.empty()) to.scanner_sha256 = more.scanner_sha256;
    // A difference of calibrations between runs is no contradiction in their records; whoever needs the
    // calibration does not know it.
    if (to.calibration_sha256 != more.calibration_sha256) to.calibration_sha256.clear();
}

}  // namespace

std::string difference_of(const RecordRules& a, const RecordRules& b) {
    const auto rules_of = [](const RecordRules& rules) {
        Coverage only;
        only.rules = rules;
        return to_json(only).at("rules");
    };
    const json all_a = rules_of(a);
    const json all_b = rules_of(b);
    json sections = all_a;
    sections.update(all_b);
    std::vector<std::string> found;
    const auto text = [](const json& value) { return value.is_null() ? "none" : value.dump(); };
    for (const auto& [section, either] : sections.items()) {
        const json of_a = all_a.value(section, json());
        const json of_b = all_b.value(section, json());
        if (of_a.is_null() != of_b.is_null())
            found.push_back(fmt::format("{}: {} and {}", section, text(of_a), text(of_b)));
        if (of_a.is_null() || of_b.is_null()) continue;
        json both = of_a;
        both.update(of_b);
        for (const auto& [key, value] : both.items()) {
            const json value_a = of_a.value(key, json());
            const json value_b = of_b.value(key, json());
            if (value_a != value_b)
                found.push_back(fmt::format("{}.{}: {} and {}", section, key, text(value_a), text(value_b)));
        }
    }
    return fmt::format("{}", fmt::join(found, "; "));
}

std::uint64_t Coverage::ticks() const {
    if (open_ticks) return *open_ticks;
    return intervals ? intervals->ticks() : 0;
}

double Coverage::since_reference_s(std::uint64_t tick) const {
    const std::uint64_t reference = reference_ticks();
    const double ticks =
        tick >= reference ? static_cast<double>(tick - reference) : -static_cast<double>(reference - tick);
    return ticks * tick_ps * 1e-12;
}

std::optional<std::chrono::system_clock::time_point> Coverage::utc_of(std::uint64_t tick) const {
    if (!anchor) return std::nullopt;
    const double since = since_reference_s(tick);
    constexpr double last_s = 9e9;  // of what the clock holds, before and after 1970
    constexpr std::chrono::system_clock::time_point epoch;
    if (!(std::abs(since + seconds_between(epoch, anchor->utc)) < last_s) || !(std::abs(since) < last_s))
        return std::nullopt;
    return anchor->utc + std::chrono::duration_cast<std::chrono::system_clock::duration>(
                             std::chrono::duration<double>(since));
}

std::optional<double> Coverage::activity_MBq_at(std::uint64_t tick) const {
    const auto utc = utc_of(tick);
    if (!utc || !activity || !activity->activity_MBq || !activity->assay) return std::nullopt;
    const double since_s = seconds_between(*activity->assay, *utc);
    return *activity->activity_MBq * std::exp2(-since_s / activity->half_life_s);
}

double Coverage::decay_factor(double half_life_s) const {
    if (!intervals || intervals->empty() || !(half_life_s > 0)) return 1;
    const double per_s = std::numbers::ln2 / half_life_s;
    double length = 0;
    double decayed = 0;  // integral of the activity, with 1 at the reference
    for (const gpu::TickRange& range : intervals->ranges()) {
        const double s = static_cast<double>(range.ticks()) * tick_ps * 1e-12;
        length += s;
        decayed += std::exp(-per_s * since_reference_s(range.start)) * -std::expm1(-per_s * s) / per_s;
    }
    return length / decayed;
}

Coverage part_of(Coverage whole, const Intervals& times) {
    for (OriginRun& run : whole.origin.runs)
        if (run.times) run.times = run.times->intersect(times);
    keep_those_with_times(whole.origin.runs);
    if (!whole.intervals) {
        whole.intervals = times;
        return whole;
    }
    const Intervals part = whole.intervals->intersect(times);
    if (part == *whole.intervals) return whole;
    if (whole.open_ticks) {
        // They are spread evenly over the intervals, as far as anybody knows.
        const double share = whole.intervals->empty() ? 0
                                                      : static_cast<double>(part.ticks()) /
                                                            static_cast<double>(whole.intervals->ticks());
        whole.open_ticks = static_cast<std::uint64_t>(static_cast<double>(*whole.open_ticks) * share);
    }
    whole.intervals = part;
    whole.loss.live.reset();
    return whole;
}

Coverage what_survived(Coverage whole, const Intervals& times) {
    whole = part_of(std::move(whole), times);
    whole.loss.live.reset();
    whole.loss.seconds_complete = false;
    return whole;
}

Coverage united(std::span<const Coverage> files, bool same_time) {
    if (files.empty()) throw CoverageError("there is nothing to unite");
    Coverage all = files.front();
    for (const Coverage& next : files.subspan(1)) {
        check_alike(all, next);
        all.origin.runs = runs_of_both(all, next);
        add_origin(all.origin, next.origin);
        if (next.anchor && (!all.anchor || next.anchor->ticks < all.anchor->ticks)) all.anchor = next.anchor;
        if (all.activity != next.activity) all.activity.reset();
        if (all.intervals && next.intervals) {
            const Intervals both = all.intervals->intersect(*next.intervals);
            // With open_ticks nobody knows when, within the intervals.
            if (!both.empty() && !same_time && !all.open_ticks && !next.open_ticks) {
                throw CoverageError(fmt::format(
                    "they overlap: both cover the ticks {} to {}; their records would count twice",
                    both.span().start, both.span().end));
            }
            // Each of several hosts has only some of the modules, so their shares cannot be averaged.
            if (all.loss.live && next.loss.live && !same_time) {
                const auto a = static_cast<double>(all.ticks());
                const auto b = static_cast<double>(next.ticks());
                all.loss.live = a + b > 0 ? (a * *all.loss.live + b * *next.loss.live) / (a + b) : 1;
            } else {
                all.loss.live.reset();
            }
            if (all.open_ticks || next.open_ticks) all.open_ticks = all.ticks() + next.ticks();
            all.intervals = all.intervals->unite(*next.intervals);
        } else {
            all.intervals.reset();
            all.open_ticks.reset();
            all.loss.live.reset();
        }
        all.loss.seconds_complete = all.loss.seconds_complete && next.loss.seconds_complete;
        for (const std::string& what : next.unknown)
            if (std::find(all.unknown.begin(), all.unknown.end(), what) == all.unknown.end())
                all.unknown.push_back(what);
    }
    keep_those_with_times(all.origin.runs);
    return all;
}

Coverage with_rules(Coverage of_singles, const config::Coincidence& coincidence,
                    const config::Energy& energy) {
    of_singles.rules = {coincidence, energy};
    return of_singles;
}

std::string scanner_sha256(const config::Scanner& scanner) {
    const std::string text = config::meaning_of_records(scanner).dump();
    config::Sha256 hash;
    hash.add(std::as_bytes(std::span(text)));
    return hash.text();
}

}  // namespace petacq::daemon
