// The JSON form of coverage, version 1, and what files of petacqd 1.0 say instead.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "config/base/error.hpp"
#include "daemon/coverage/coverage.hpp"
#include "daemon/system/utc.hpp"

namespace petacq::daemon {

namespace {

using nlohmann::json;

constexpr std::uint64_t json_version = 1;

json or_null(const std::string& text) {
    return text.empty() ? json() : json(text);
}

std::int64_t unix_ns(std::chrono::system_clock::time_point time) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

std::chrono::system_clock::time_point from_unix_ns(std::int64_t ns) {
    return std::chrono::system_clock::time_point(
        std::chrono::duration_cast<std::chrono::system_clock::duration>(std::chrono::nanoseconds(ns)));
}

[[noreturn]] void refuse(const std::string& what) {
    throw std::invalid_argument("coverage: " + what);
}

const json& member(const json& object, const char* key) {
    static const json null;
    const auto found = object.is_object() ? object.find(key) : object.end();
    return object.is_object() && found != object.end() ? *found : null;
}

std::string text_or_empty(const json& value) {
    return value.is_string() ? value.get<std::string>() : std::string();
}

/// A member that must be there. `good`: whether the value is as expected.
template <class Good>
const json& required(const json& object, const char* key, const char* expectation, Good good) {
    const json& value = member(object, key);
    if (!good(value)) {
        const std::string found = value.dump(-1, ' ', false, json::error_handler_t::replace);
        refuse(fmt::format("{}: expected {}, found {}", key, expectation, found.substr(0, 60)));
    }
    return value;
}

std::uint64_t required_ticks(const json& object, const char* key) {
    return required(object, key, "a number of ticks", [](const json& v) { return v.is_number_unsigned(); })
        .get<std::uint64_t>();
}

std::chrono::system_clock::time_point required_utc(const json& object, const char* key) {
    constexpr std::int64_t last = 9'000'000'000'000'000'000;  // the clock holds little more
    const json& ns = required(object, key, "nanoseconds since 1970",
                              [](const json& v) { return v.is_number_integer() && v >= 0 && v <= last; });
    return from_unix_ns(ns.get<std::int64_t>());
}

double required_above_0(const json& object, const char* key) {
    return required(object, key, "a number above 0", [](const json& v) { return v.is_number() && v > 0; })
        .get<double>();
}

/// Whether the value is a tick that a scanner can have, or the 0 that files of 1.0 have for an unknown one.
bool is_tick_ps(const json& value) {
    return value.is_number() && value >= 0 && value <= 1e9;
}

/// A member that may be missing or null: its value is not known then.
std::optional<double> known_number(const json& object, const char* key, double most,
                                   const char* expectation) {
    const auto good = [&](const json& v) { return v.is_null() || (v.is_number() && v >= 0 && v <= most); };
    const json& value = required(object, key, expectation, good);
    return value.is_null() ? std::nullopt : std::optional(value.get<double>());
}

Intervals intervals_from(const json& list) {
    if (!list.is_array()) refuse("expected a list of intervals");
    std::vector<gpu::TickRange> ranges;
    for (const json& entry : list) {
        if (!entry.is_array() || entry.size() != 2 || !entry[0].is_number_unsigned() ||
            !entry[1].is_number_unsigned())
            refuse("expected intervals of two ticks each, [start, end]");
        ranges.push_back({entry[0].get<std::uint64_t>(), entry[1].get<std::uint64_t>()});
        if (ranges.back().start > ranges.back().end)
            refuse(fmt::format("expected an interval that does not end before it starts, found [{}, {}]",
                               ranges.back().start, ranges.back().end));
    }
    return Intervals(std::move(ranges));
}

json to_json(const Intervals& intervals) {
    json list = json::array();
    for (const gpu::TickRange& range : intervals.ranges())
        list.push_back({range.start, range.end});
    return list;
}

json to_json(const OriginRun& run) {
    json out = {{"run_id", run.run_id}, {"directory", or_null(run.directory.string())}};
    if (run.times) out["intervals"] = to_json(*run.times);
    return out;
}

OriginRun origin_run_from(const json& document) {
    OriginRun run{text_or_empty(member(document, "run_id")), text_or_empty(member(document, "directory"))};
    if (const json& list = member(document, "intervals"); !list.is_null()) run.times = intervals_from(list);
    return run;
}

json to_json(const StatedActivity& activity) {
    json out = {{"nuclide", activity.nuclide},
                {"half_life_s", activity.half_life_s},
                {"branching_ratio", activity.branching_ratio}};
    if (activity.activity_MBq) out["activity_MBq"] = *activity.activity_MBq;
    if (activity.assay) out["assay_unix_ns"] = unix_ns(*activity.assay);
    return out;
}

StatedActivity activity_from(const json& document) {
    StatedActivity activity;
    activity.nuclide = required(document, "nuclide", "a name", [](const json& v) { return v.is_string(); });
    activity.half_life_s = required_above_0(document, "half_life_s");
    activity.branching_ratio = required_above_0(document, "branching_ratio");
    activity.activity_MBq = known_number(document, "activity_MBq", std::numeric_limits<double>::max(),
                                         "a number of at least 0, or null");
    if (!member(document, "assay_unix_ns").is_null())
        activity.assay = required_utc(document, "assay_unix_ns");
    return activity;
}

json rules_json(const RecordRules& rules) {
    json out = {{"coincidence", rules.coincidence ? config::to_json(*rules.coincidence) : json()},
                {"energy", rules.energy ? config::to_json(*rules.energy) : json()}};
    if (rules.gammas) out["gammas"] = config::to_json(*rules.gammas);
    return out;
}

RecordRules rules_from(const json& document) {
    RecordRules rules;
    if (const json& c = member(document, "coincidence"); c.is_object())
        rules.coincidence = config::coincidence_from_json(c);
    if (const json& e = member(document, "energy"); e.is_object()) rules.energy = config::energy_from_json(e);
    if (const json& g = member(document, "gammas"); g.is_object()) rules.gammas = config::gammas_from_json(g);
    return rules;
}

// Files of petacqd 1.0.

/// The configuration of the run, with the settings by which `petlm resort` has replaced some of it.
RecordRules rules_of_1_0(const json& description, const json& run, std::vector<std::string>& unknown) {
    json document = member(run, "configuration");
    const json& resorted = member(description, "resorted");
    if (document.is_object()) {
        for (const char* section : {"coincidence", "energy"})
            if (resorted.contains(section)) document[section] = resorted[section];
        try {
            const auto configuration = config::configuration_from_json(document, "/");
            return {configuration.coincidence, configuration.energy};
        } catch (const config::Error&) {
            // An early version or another program wrote it: only the description is known.
        }
    }
    const json& window = member(description, "window_ticks");
    if (!window.is_number_unsigned() || window > std::numeric_limits<std::uint32_t>::max()) {
        unknown.emplace_back("the rules by which its records were made");
        return {};
    }
    if (resorted.contains("coincidence")) {
        try {
            return rules_from(resorted);
        } catch (const std::exception&) {
            // as above
        }
    }
    config::Coincidence c{};
    c.window_ticks = window.get<std::uint32_t>();
    c.max_multiplicity = 64;
    if (const json& delay = member(description, "delay_ticks"); delay.is_number_unsigned())
        c.delay_ticks = delay.get<std::uint64_t>();
    if (member(description, "delayeds") == name_of(config::DelayedRule::delayed_window))
        c.delayeds = config::DelayedRule::delayed_window;
    for (const char* what : {"min_module_difference", "max_ring_difference", "window_mode",
                             "multiples_policy", "the energy window"})
        unknown.emplace_back(what);
    return {c, std::nullopt};
}

std::optional<StatedActivity> activity_of_1_0(const json& said) {
    if (!member(said, "nuclide").is_string() || !member(said, "half_life_s").is_number() ||
        !member(said, "branching_ratio").is_number())
        return std::nullopt;
    StatedActivity activity;
    activity.nuclide = said.at("nuclide").get<std::string>();
    activity.half_life_s = said.at("half_life_s").get<double>();
    activity.branching_ratio = said.at("branching_ratio").get<double>();
    if (!(activity.half_life_s > 0) || !(activity.branching_ratio > 0)) return std::nullopt;
    if (const json& value = member(said, "activity_MBq"); value.is_number() && value >= 0)
        activity.activity_MBq = value.get<double>();
    activity.assay = utc_time(text_or_empty(member(said, "assay_utc")));
    return activity;
}

std::optional<std::uint64_t> ticks(const json& object, const char* key) {
    const json& value = member(object, key);
    return value.is_number_unsigned() ? std::optional(value.get<std::uint64_t>()) : std::nullopt;
}

/// From the first data to the stop: runs of 1.0 start where detector time stood, also before their data.
std::optional<gpu::TickRange> recorded_by_1_0(const json& run, double tick_ps) {
    const auto start = ticks(run, "start_ticks");
    const auto stop = ticks(run, "stop_ticks");
    if (!start || !stop || *stop < *start) return std::nullopt;
    const json& data = member(member(run, "expected_randoms"), "data_s");
    if (!data.is_number() || !(tick_ps > 0)) return gpu::TickRange{*start, *stop};
    const double data_ticks = data.get<double>() / (tick_ps * 1e-12);
    const auto whole = static_cast<double>(*stop - *start);
    if (data_ticks >= whole * (1 - 1e-9)) return gpu::TickRange{*start, *stop};
    return gpu::TickRange{*stop - static_cast<std::uint64_t>(std::max(0.0, data_ticks)), *stop};
}

std::optional<TimeAnchor> anchor_of_1_0(const json& run, std::uint64_t begin, double tick_ps) {
    const auto start_utc = utc_time(text_or_empty(member(run, "start_utc")));
    const auto stop_utc = utc_time(text_or_empty(member(run, "stop_utc")));
    const auto start = ticks(run, "start_ticks");
    const auto stop = ticks(run, "stop_ticks");
    if (start && *start == begin && start_utc) return TimeAnchor{begin, *start_utc};
    if (!stop || !stop_utc || *stop < begin) return std::nullopt;
    Coverage from_stop;
    from_stop.tick_ps = tick_ps;
    from_stop.anchor = TimeAnchor{*stop, *stop_utc};
    const auto utc = from_stop.utc_of(begin);
    return utc ? std::optional(TimeAnchor{begin, *utc}) : std::nullopt;
}

void set_intervals_of_1_0(Coverage& coverage, const json& description, const json& run, bool whole_run) {
    const auto recorded = recorded_by_1_0(run, coverage.tick_ps);
    if (recorded) {
        coverage.anchor = anchor_of_1_0(run, recorded->start, coverage.tick_ps);
    } else if (const auto start = ticks(run, "start_ticks")) {
        coverage.anchor = anchor_of_1_0(run, *start, coverage.tick_ps);  // the run was interrupted
    }
    const json& cut = member(description, "cut");
    const json& gate = member(description, "gate");
    const bool derived = description.contains("merged") || (cut.is_object() && gate.is_object());
    if (recorded && !derived) {
        if (cut.is_object()) {
            const gpu::TickRange asked{ticks(cut, "from_ticks").value_or(0),
                                       ticks(cut, "to_ticks").value_or(UINT64_MAX)};
            coverage.intervals = Intervals(*recorded).intersect(asked);
            if (cut.contains("gate")) {
                coverage.open_ticks = ticks(cut, "open_ticks");
                if (!coverage.open_ticks) coverage.intervals.reset();
            }
        } else if (gate.is_object()) {
            coverage.open_ticks = ticks(gate, "live_ticks");
            if (coverage.open_ticks) coverage.intervals = Intervals(*recorded);
        } else if (whole_run) {
            coverage.intervals = Intervals(*recorded);
        }
    }
    if (!coverage.intervals) coverage.unknown.emplace_back("when its records were taken, and for how long");
    if (!coverage.anchor) coverage.unknown.emplace_back("the time of day");
}

Coverage coverage_of_1_0(const json& description, const json& run, bool whole_run) {
    Coverage coverage;
    if (const json& tick = member(description, "tick_ps"); is_tick_ps(tick))
        coverage.tick_ps = tick.get<double>();
    coverage.rules = rules_of_1_0(description, run, coverage.unknown);
    const json& said = member(description, "operator");
    coverage.activity = activity_of_1_0(said.is_object() ? said : member(run, "operator"));
    if (const std::string id = text_or_empty(member(description, "run_id")); !id.empty())
        coverage.origin.runs.push_back({id, {}});
    coverage.origin.calibration_sha256 = text_or_empty(member(run, "calibration_sha256"));
    if (const json& scanner = member(run, "scanner"); scanner.is_object()) {
        try {
            coverage.origin.scanner_sha256 = scanner_sha256(config::scanner_from_json(scanner));
        } catch (const config::Error&) {
            // whoever needs the scanner refuses it, with the reason
        }
    }
    set_intervals_of_1_0(coverage, description, run, whole_run);
    return coverage;
}

}  // namespace

json to_json(const Coverage& coverage) {
    json out = {{"version", json_version}, {"tick_ps", coverage.tick_ps},
                {"intervals", nullptr},    {"anchor", nullptr},
                {"activity", nullptr},     {"rules", rules_json(coverage.rules)}};
    if (coverage.intervals) out["intervals"] = to_json(*coverage.intervals);
    if (coverage.open_ticks) out["open_ticks"] = *coverage.open_ticks;
    if (coverage.anchor)
        out["anchor"] = {{"ticks", coverage.anchor->ticks}, {"unix_ns", unix_ns(coverage.anchor->utc)}};
    if (coverage.activity) out["activity"] = to_json(*coverage.activity);
    out["loss"] = {{"live", coverage.loss.live ? json(*coverage.loss.live) : json()},
                   {"seconds_complete", coverage.loss.seconds_complete}};
    json runs = json::array();
    for (const OriginRun& run : coverage.origin.runs)
        runs.push_back(to_json(run));
    out["origin"] = {{"runs", std::move(runs)},
                     {"calibration_sha256", or_null(coverage.origin.calibration_sha256)},
                     {"scanner_sha256", or_null(coverage.origin.scanner_sha256)}};
    if (!coverage.unknown.empty()) out["unknown"] = coverage.unknown;
    return out;
}

void state_in(json& run, const Coverage& coverage) {
    run["coverage"] = to_json(coverage);
    if (!coverage.intervals) return;
    const std::uint64_t reference = coverage.reference_ticks();
    const gpu::TickRange none{reference, reference};
    const auto [start, stop] = coverage.intervals->empty() ? none : coverage.span();
    run["start_ticks"] = start;
    run["stop_ticks"] = stop;
    if (const auto utc = coverage.utc_of(start)) run["start_utc"] = utc_text(*utc);
    if (const auto utc = coverage.utc_of(stop)) run["stop_utc"] = utc_text(*utc);
    const auto said = run.find("operator");
    if (const auto activity = coverage.activity_MBq_at(start);
        activity && said != run.end() && said->is_object())
        (*said)["activity_at_start_MBq"] = *activity;
}

Coverage coverage_from_json(const json& document) {
    if (!document.is_object()) refuse("expected an object");
    if (const json& version = member(document, "version"); version != json_version)
        refuse(fmt::format("expected version {}, found {}", json_version, version.dump()));
    Coverage coverage;
    try {
        coverage.tick_ps = required(document, "tick_ps", "a number from 0 to 1e9", is_tick_ps);
        if (const json& list = member(document, "intervals"); !list.is_null())
            coverage.intervals = intervals_from(list);
        if (const json& open = member(document, "open_ticks"); open.is_number_unsigned())
            coverage.open_ticks = open.get<std::uint64_t>();
        if (const json& anchor = member(document, "anchor"); anchor.is_object()) {
            coverage.anchor = TimeAnchor{required_ticks(anchor, "ticks"), required_utc(anchor, "unix_ns")};
        }
        if (const json& activity = member(document, "activity"); activity.is_object())
            coverage.activity = activity_from(activity);
        coverage.rules = rules_from(member(document, "rules"));
        const json& loss = member(document, "loss");
        coverage.loss.live = known_number(loss, "live", 1, "a share from 0 to 1, or null");
        if (const json& complete = member(loss, "seconds_complete"); complete.is_boolean())
            coverage.loss.seconds_complete = complete.get<bool>();
        const json& origin = member(document, "origin");
        if (const json& runs = member(origin, "runs"); runs.is_array()) {
            for (const json& run : runs)
                coverage.origin.runs.push_back(origin_run_from(run));
        }
        coverage.origin.calibration_sha256 = text_or_empty(member(origin, "calibration_sha256"));
        coverage.origin.scanner_sha256 = text_or_empty(member(origin, "scanner_sha256"));
        if (const json& unknown = member(document, "unknown"); unknown.is_array()) {
            for (const json& what : unknown)
                coverage.unknown.push_back(text_or_empty(what));
        }
    } catch (const config::Error& error) {
        refuse(error.what());
    }
    return coverage;
}

Coverage coverage_of_run(const json& run) {
    json description = {{"tick_ps", member(member(run, "scanner"), "tick_ps")},
                        {"run_id", member(run, "run_id")}};
    if (run.contains("coverage")) description["coverage"] = run.at("coverage");
    return coverage_of(description, run, true);
}

Coverage coverage_of(const json& description, const json& run, bool whole_run) {
    if (description.contains("coverage")) return coverage_from_json(description.at("coverage"));
    return coverage_of_1_0(description, run, whole_run);
}

}  // namespace petacq::daemon
