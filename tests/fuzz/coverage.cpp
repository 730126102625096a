// The coverage of a file, as its description and its run state it, of this version or of 1.0; and sets of
// times. Input: {"description": ..., "run": ...}, a NUL, and the ends of ranges (a byte each).
#include "daemon/coverage/coverage.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "config/base/error.hpp"
#include "config/base/json_file.hpp"
#include "config/base/schemas.hpp"
#include "tests/fuzz/base/json_target.hpp"
#include "tests/support/intervals.hpp"

using namespace petacq;
using daemon::Coverage;
using daemon::Intervals;
using fuzz::require;
using nlohmann::json;

std::string_view fuzz::schema_of_target() {
    return config::petacqd_schema_text();  // of the rules
}

namespace {

void check_form(const Intervals& times) {
    const auto& ranges = times.ranges();
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        require(ranges[i].start < ranges[i].end, "no range is empty");
        require(i == 0 || ranges[i - 1].end < ranges[i].start, "ranges are in order and do not touch");
    }
}

void check_sets(std::span<const std::uint8_t> bytes) {
    constexpr std::size_t all = 256;
    std::array<std::vector<gpu::TickRange>, 2> ranges;
    for (std::size_t i = 0; i + 1 < bytes.size() && i < 64; i += 2)
        ranges[i / 2 % 2].push_back({bytes[i], bytes[i + 1]});
    const Intervals a(ranges[0]);
    const Intervals b(ranges[1]);
    const auto in_a = test::ticks_in(a, 0, all);
    const auto in_b = test::ticks_in(b, 0, all);
    const auto both = test::ticks_in(a.intersect(b), 0, all);
    const auto any = test::ticks_in(a.unite(b), 0, all);
    const auto rest = test::ticks_in(a.without(b), 0, all);
    for (std::size_t t = 0; t < all; ++t) {
        bool listed = false;
        for (const gpu::TickRange& range : ranges[0])
            listed = listed || (t >= range.start && t < range.end);
        require(in_a[t] == listed && a.contains(t) == listed, "a set has the ticks of its ranges");
        require(both[t] == (in_a[t] && in_b[t]) && any[t] == (in_a[t] || in_b[t]) &&
                    rest[t] == (in_a[t] && !in_b[t]),
                "sets of times, tick by tick");
    }
    for (const Intervals& set : {a, b, a.intersect(b), a.unite(b), a.without(b)})
        check_form(set);
}

/// What every command may ask of any coverage.
void check(const Coverage& coverage) {
    fuzz::accept();
    require(std::isfinite(coverage.tick_ps) && coverage.tick_ps >= 0 && coverage.tick_ps <= 1e9,
            "a tick has a length");
    require(!coverage.loss.live || (*coverage.loss.live >= 0 && *coverage.loss.live <= 1), "a share of data");
    if (coverage.activity) {
        require(coverage.activity->half_life_s > 0 && coverage.activity->branching_ratio > 0,
                "half-life and branching ratio are above 0");
        require(!coverage.activity->activity_MBq || *coverage.activity->activity_MBq >= 0,
                "no activity is negative");
    }
    if (coverage.intervals) check_form(*coverage.intervals);
    for (const std::uint64_t tick :
         {std::uint64_t{0}, coverage.span().start, coverage.span().end, UINT64_MAX}) {
        require(std::isfinite(coverage.since_reference_s(tick)), "seconds from the reference");
        (void)coverage.utc_of(tick);
        (void)coverage.activity_MBq_at(tick);
    }
    (void)coverage.decay_factor(coverage.activity ? coverage.activity->half_life_s : 1);
    json run = {{"operator", json::object()}};
    daemon::state_in(run, coverage);
    (void)daemon::difference_of(coverage.rules, {});

    const json written = daemon::to_json(coverage);
    require(daemon::to_json(daemon::coverage_from_json(written)) == written,
            "a coverage that is written out reads back the same");
    if (!coverage.intervals) return;
    const std::uint64_t middle = coverage.span().start / 2 + coverage.span().end / 2;
    const Coverage first = daemon::part_of(coverage, gpu::TickRange{0, middle});
    const Coverage rest = daemon::part_of(coverage, gpu::TickRange{middle, UINT64_MAX});
    const Coverage again = daemon::united(std::vector{rest, first});
    require(again.intervals == coverage.intervals && again.anchor == coverage.anchor,
            "two parts of a coverage are the whole");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto [text, bytes] = fuzz::text_and_rest(data, size);
    check_sets(bytes);
    json document;
    try {
        document = config::parse_json(text);
    } catch (const config::Error&) {
        return bytes.empty() ? -1 : 0;
    }
    if (!document.is_object()) return 0;
    const fuzz::MemoryBound bound((std::size_t{64} << 20) + 2000 * size);
    try {
        check(daemon::coverage_of(document["description"], document["run"], size % 2 == 0));
    } catch (const std::invalid_argument& error) {
        require(fuzz::says_what_was_expected(error.what()), "an error says what was expected");
    }
    try {
        (void)daemon::coverage_of_run(document["run"]);
    } catch (const std::invalid_argument&) {
    }
    return 0;
}
