#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "daemon/peer/run_names.hpp"
#include "daemon/system/quantity_text.hpp"
#include "tools/petctl/hosts/summary.hpp"
#include "tools/petctl/text/status_tables.hpp"
#include "tools/petctl/text/strip.hpp"
#include "tools/petctl/text/values.hpp"

namespace petacq::petctl {

using daemon::joined_run;
using nlohmann::json;

namespace {

/// Detector times that are so far apart belong to different clocks. Watermarks of one clock differ by less: a
/// slow source holds one of them up.
constexpr double max_watermark_difference_s = 10;

json reason(const std::string& host, const char* code, const std::string& message, const char* severity) {
    return {{"host", host}, {"code", code}, {"message", message}, {"severity", severity}};
}

void add_own_reasons(json& reasons, const std::string& host, const json& health) {
    const json& own = at(health, {"reasons"});
    if (own.is_array()) {
        for (const json& one : own) {
            const bool failed = at(one, {"severity"}) == "failed";
            reasons.push_back(
                reason(host, "", text_of(at(one, {"message"})), failed ? "failed" : "degraded"));
            reasons.back()["code"] = printable(text_of(at(one, {"code"})));
        }
    }
    // A state that nothing explains, or that is none.
    const json& state = at(health, {"state"});
    if (state == "ok" || (own.is_array() && !own.empty())) return;
    reasons.push_back(reason(host, "health_unknown", "its health is " + text_of(state), "failed"));
}

/// Why a host of a pair is missing while a partner of it is there; empty: it is not.
std::string missing_half(const HostAnswer& own, const std::vector<HostAnswer>& statuses,
                         const HostPairs& pairs) {
    if (own.good() && at(own.result(), {"run"}).is_object()) return "";
    for (const std::string& partner : pairs.partners(own.host)) {
        for (const HostAnswer& status : statuses) {
            if (status.host != partner || !status.good()) continue;
            const json& run = at(status.result(), {"run"});
            const std::string has =
                run.is_object() ? "has run " + printable(text_of(at(run, {"id"}))) : "answers";
            if (!own.good()) return fmt::format("{}; {} {}", own.failure, partner, has);
            if (!run.is_object()) continue;
            return fmt::format(
                "it has no run, since petacqd started there {} ago at the latest; {} {}: petctl join takes "
                "it up",
                duration(at(own.result(), {"uptime_s"})), partner, has);
        }
    }
    return "";
}

/// Reasons that no host can see alone.
void add_common_reasons(json& reasons, const std::vector<HostAnswer>& statuses, const HostPairs& pairs) {
    for (const std::string& line : disagreements(statuses))
        reasons.push_back(reason("", "hosts_disagree", line, "degraded"));
    std::set<std::string> runs;
    std::string named;
    double earliest = INFINITY;
    double latest = 0;
    std::set<std::string> all;
    for (const HostAnswer& status : statuses)
        all.insert(text_of(at(status.result(), {"run", "id"})));
    for (const HostAnswer& status : statuses) {
        if (!status.good() || !missing_half(status, statuses, pairs).empty()) continue;
        const std::string run = text_of(at(status.result(), {"run", "id"}));
        runs.insert(joined_run(run, [&](const std::string& id) { return all.contains(id); }));
        named +=
            fmt::format("{}{} has {}", named.empty() ? "" : ", ", status.host, run == "-" ? "none" : run);
        const json& watermark = at(status.result(), {"watermark_s"});
        const json& rate = at(status.result(), {"rates", "frames_per_s"});
        if (!watermark.is_number() || !rate.is_number() || rate.get<double>() <= 0) continue;
        earliest = std::min(earliest, watermark.get<double>());
        latest = std::max(latest, watermark.get<double>());
    }
    if (runs.size() > 1)
        reasons.push_back(reason("", "runs_differ", "the hosts have different runs: " + named, "degraded"));
    if (latest - earliest > max_watermark_difference_s) {
        reasons.push_back(
            reason("", "clocks_differ",
                   fmt::format("the detector times of the hosts are {:.1f} s apart", latest - earliest),
                   "degraded"));
    }
}

/// The figures of a host, or of all.
struct Figures {
    double frames_per_s = 0;
    double singles_per_s = 0;
    std::uint64_t lost = 0;
    std::uint64_t dropped = 0;
    double disk_s = INFINITY;  ///< time left

    /// The better ones of two hosts of a pair.
    void take_best(const Figures& other) {
        frames_per_s = std::max(frames_per_s, other.frames_per_s);
        singles_per_s = std::max(singles_per_s, other.singles_per_s);
        lost = std::min(lost, other.lost);
        dropped = std::min(dropped, other.dropped);
        disk_s = std::min(disk_s, other.disk_s);
    }
    void add(const Figures& other) {
        frames_per_s += other.frames_per_s;
        singles_per_s += other.singles_per_s;
        lost += other.lost;
        dropped += other.dropped;
        disk_s = std::min(disk_s, other.disk_s);
    }
    void add(const json& status) {
        const auto number = [&](std::initializer_list<const char*> path) {
            const json& value = at(status, path);
            return value.is_number() ? value.get<double>() : 0.0;
        };
        const auto count = [&](const char* name) {
            const json& value = at(status, {"ledger", "datagrams", name});
            return value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
        };
        frames_per_s += number({"rates", "frames_per_s"});
        singles_per_s += number({"rates", "singles_per_s"});
        lost += count("lost");
        dropped += count("dropped_kernel");
        if (const json& left = at(status, {"disk", "time_left_s"}); left.is_number())
            disk_s = std::min(disk_s, left.get<double>());
    }
};

Line row(const std::string& host, const Span& word, const std::string& state, const std::string& run,
         const json& health, const Figures& f) {
    return {{host},
            word,
            {state},
            {run},
            {text_of(health), health_style(health)},
            {scaled(f.frames_per_s, "/s")},
            {scaled(f.singles_per_s, "/s")},
            {text_of(f.lost)},
            {text_of(f.dropped)},
            {std::isinf(f.disk_s) ? "-" : duration(f.disk_s)}};
}

std::string run_of(const json& status) {
    const std::string id = text_of(at(status, {"run", "id"}));
    return at(status, {"run", "waiting"}) == true ? id + " (waits)" : id;
}

/// The value that all have, or "different".
std::string common_of(const json& hosts, std::string (*value)(const json& status)) {
    std::set<std::string> all;
    for (const json& status : hosts)
        if (!status.contains("failure")) all.insert(value(status));
    if (all.empty()) return "-";
    return all.size() == 1 ? *all.begin() : "different";
}

/// The word of the strip that all have, or how many have which. A host that does not tell may record or not.
std::string common_words(const json& hosts) {
    std::map<std::string, std::size_t> counts;
    for (const json& status : hosts) {
        const std::string word = strip_word(status).text;
        ++counts[word == "-" ? "UNKNOWN" : word];
    }
    if (counts.size() == 1) return counts.begin()->first;
    std::string text;
    for (const auto& [word, count] : counts)
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, word);
    return text;
}

Span common_mark(const json& hosts, bool unicode) {
    const std::string words = common_words(hosts);
    for (const json& status : hosts)
        if (strip_word(status).text == words) return strip_mark(status, unicode);
    return {words, Style::bad};
}

/// The hosts of each unit: those of the pairs, and all others by themselves.
std::vector<std::vector<std::string>> units_of(const json& group) {
    std::vector<std::vector<std::string>> units;
    if (group.contains("pairs")) group["pairs"].get_to(units);
    for (const auto& [host, status] : group["hosts"].items()) {
        const bool paired = std::any_of(units.begin(), units.end(), [&, name = host](const auto& unit) {
            return std::find(unit.begin(), unit.end(), name) != unit.end();
        });
        if (!paired) units.push_back({host});
    }
    return units;
}

/// The status of each unit: that of a host that records, or else of one that answers.
json statuses_of_units(const json& group) {
    json all = json::array();
    for (const auto& unit : units_of(group)) {
        const auto better = [&](const std::string& a, const std::string& b) {
            const auto rank = [&](const std::string& host) {
                const json& status = group["hosts"][host];
                return status.contains("failure") ? 0 : strip_word(status).text == "RECORDING" ? 2 : 1;
            };
            return rank(a) < rank(b);
        };
        all.push_back(group["hosts"][*std::max_element(unit.begin(), unit.end(), better)]);
    }
    return all;
}

Figures figures_of(const json& group) {
    Figures all;
    for (const auto& unit : units_of(group)) {
        std::optional<Figures> best;
        for (const std::string& host : unit) {
            const json& status = group["hosts"][host];
            if (status.contains("failure")) continue;
            Figures own;
            own.add(status);
            if (best) {
                best->take_best(own);
            } else {
                best = own;
            }
        }
        if (best) all.add(*best);
    }
    return all;
}

}  // namespace

json group_status(const std::vector<HostAnswer>& statuses, const HostPairs& pairs) {
    json hosts = json::object();
    json reasons = json::array();
    for (const HostAnswer& status : statuses) {
        const std::string missing = missing_half(status, statuses, pairs);
        if (!missing.empty()) reasons.push_back(reason(status.host, "half_missing", missing, "degraded"));
        if (status.good()) {
            hosts[status.host] = status.result();
            add_own_reasons(reasons, status.host, at(status.result(), {"health"}));
        } else {
            hosts[status.host] = {{"failure", status.failure}};
            if (missing.empty())
                reasons.push_back(reason(status.host, "host_unreachable", status.failure, "failed"));
        }
    }
    add_common_reasons(reasons, statuses, pairs);
    const bool failed = std::any_of(reasons.begin(), reasons.end(),
                                    [](const json& one) { return one["severity"] == "failed"; });
    const char* state = failed ? "failed" : reasons.empty() ? "ok" : "degraded";
    json group = {{"hosts", std::move(hosts)},
                  {"health", {{"state", state}, {"reasons", std::move(reasons)}}}};
    if (const json several = pairs.several(); !several.is_null()) group["pairs"] = several;
    return group;
}

Lines group_status_lines(const json& group) {
    const bool unicode = unicode_wanted();
    Table table{{true, true, true, true, true, false, false, false, false, false}, {}};
    Line headings;
    for (const char* heading :
         {"host", "recording", "state", "run", "health", "frames", "singles", "lost", "dropped", "disk left"})
        headings.push_back({heading, Style::faint});
    table.rows.push_back(std::move(headings));
    const Figures all = figures_of(group);
    const json units = statuses_of_units(group);
    for (const auto& [host, status] : group["hosts"].items()) {
        if (status.contains("failure")) {
            table.rows.push_back({{host}, {"no answer", Style::bad}, {}, {}, {}, {}, {}, {}, {}, {}});
            continue;
        }
        Figures own;
        own.add(status);
        table.rows.push_back(row(host, strip_mark(status, unicode), text_of(at(status, {"state"})),
                                 run_of(status), at(status, {"health", "state"}), own));
    }
    const auto state = [](const json& status) { return text_of(at(status, {"state"})); };
    table.rows.push_back(row("all", common_mark(units, unicode), common_of(units, state),
                             common_of(units, run_of), group["health"]["state"], all));
    Lines lines = table_lines(table);
    for (const auto& [host, status] : group["hosts"].items()) {
        const json& recording = at(status, {"recording"});
        if (at(recording, {"state"}) == "no_data")
            lines.push_back({{"  " + host + ": " + text_of(at(recording, {"text"}))}});
    }
    for (const json& one : group["health"]["reasons"]) {
        const std::string host = one["host"];
        lines.push_back({{"  " + (host.empty() ? "" : host + ": ")},
                         {one["code"].get<std::string>(), health_style(one["severity"])},
                         {": " + one["message"].get<std::string>()}});
    }
    return lines;
}

std::string group_status_line(const json& group) {
    const Figures all = figures_of(group);
    const json units = statuses_of_units(group);
    std::string codes;
    for (const json& one : group["health"]["reasons"]) {
        const std::string host = one["host"];
        codes +=
            (codes.empty() ? " (" : ", ") + (host.empty() ? "" : host + " ") + one["code"].get<std::string>();
    }
    const auto state = [](const json& status) { return text_of(at(status, {"state"})); };
    return fmt::format("{}  {}  {}  {}{}  run {}  frames {}  singles {}  lost {}  dropped {}",
                       daemon::counted_text(group["hosts"].size(), "host"), common_words(units),
                       common_of(units, state), text_of(group["health"]["state"]),
                       codes.empty() ? "" : codes + ")", common_of(units, run_of),
                       scaled(all.frames_per_s, "/s"), scaled(all.singles_per_s, "/s"), text_of(all.lost),
                       text_of(all.dropped));
}

}  // namespace petacq::petctl
