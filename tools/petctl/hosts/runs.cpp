// The runs of several hosts, each in one row.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tools/petctl/hosts/summary.hpp"
#include "tools/petctl/text/status_text.hpp"
#include "tools/petctl/text/values.hpp"

namespace petacq::petctl {

using nlohmann::json;

namespace {

/// A run on the hosts that list it.
using OnHosts = std::vector<std::pair<std::string, const json*>>;

/// The state of a run that differs between hosts is the last of these, or one that is not known.
constexpr std::array states{"complete",   "recovered",   "running", "bad-ledger",
                            "unreadable", "interrupted", "failed"};

std::ptrdiff_t rank_of(const json& state) {
    return std::find_if(states.begin(), states.end(), [&](const char* word) { return state == word; }) -
           states.begin();
}

std::string start_of(const json& run) {
    const json& start = at(run, {"start_utc"});
    return start.is_string() ? start.get<std::string>() : "";
}

/// The reason that all have, or how the run ended on each.
std::string reason_of(const OnHosts& runs) {
    const auto end_of = [](const json& run) {
        return std::pair(text_of(at(run, {"state"})), text_of(at(run, {"reason"})));
    };
    const auto first = end_of(*runs.front().second);
    if (std::all_of(runs.begin(), runs.end(), [&](const auto& one) { return end_of(*one.second) == first; }))
        return first.second;
    std::string text;
    for (const auto& [host, run] : runs) {
        const auto [state, reason] = end_of(*run);
        text += fmt::format("{}{}: {}{}", text.empty() ? "" : "; ", host, state,
                            reason == "-" ? "" : ", " + reason);
    }
    return text;
}

json row_of(const std::string& id, const OnHosts& runs, const HostPairs& pairs) {
    json row = {{"run", id}, {"ledger_closed", true}, {"reason", reason_of(runs)}};
    for (const char* count : {"prompts", "delayeds", "singles", "triples", "delayed_triples"})
        add_counts(row[count], runs, count, pairs);
    for (const auto& [host, run] : runs) {
        add_count(row["bytes"], at(*run, {"bytes"}));
        add_closed(row["ledger_closed"], at(*run, {"ledger_closed"}));
        row["hosts"].push_back(host);
        const json& verdict = at(*run, {"verdict"});
        if (verdict.is_object() && (!row.contains("verdict") || at(verdict, {"state"}) == "bad" ||
                                    at(row["verdict"], {"state"}) == "good"))
            row["verdict"] = verdict;
        const json& state = at(*run, {"state"});
        if (!row.contains("state") || rank_of(state) > rank_of(row["state"])) row["state"] = state;
        if (!row.contains("start_utc") || start_of(*run) < start_of(row)) row["start_utc"] = start_of(*run);
        if (const json& seconds = at(*run, {"seconds"}); seconds.is_number())
            row["seconds"] = std::max(row.value("seconds", 0.0), seconds.get<double>());
    }
    return row;
}

}  // namespace

json group_runs(const std::vector<HostRuns>& lists, std::optional<std::size_t> last, const HostPairs& pairs) {
    json hosts = json::object();
    std::map<std::string, OnHosts> runs;
    for (const HostRuns& list : lists)
        hosts[list.host] = list.failure.empty() ? list.runs.document() : json{{"failure", list.failure}};
    for (const auto& [host, list] : hosts.items()) {
        if (!list.contains("runs")) continue;
        for (const json& run : list["runs"])
            runs[text_of(at(run, {"run"}))].emplace_back(host, &run);
    }
    json rows = json::array();
    for (const auto& [id, on_hosts] : runs) {
        json row = row_of(id, on_hosts, pairs);
        row["not_on"] = json::array();
        for (const HostRuns& list : lists) {
            // An earlier one may be on a page that was not asked for.
            const json& own = at(hosts[list.host], {"runs"});
            const bool known =
                own.is_array() && (!list.runs.more() || (!own.empty() && start_of(own[0]) < start_of(row)));
            const bool has = std::any_of(on_hosts.begin(), on_hosts.end(),
                                         [&](const auto& one) { return one.first == list.host; });
            if (known && !has) row["not_on"].push_back(list.host);
        }
        rows.push_back(std::move(row));
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [](const json& a, const json& b) { return start_of(a) < start_of(b); });
    if (last && rows.size() > *last)
        rows.erase(rows.begin(), rows.end() - static_cast<std::ptrdiff_t>(*last));
    return {{"hosts", std::move(hosts)}, {"runs", std::move(rows)}};
}

Lines group_runs_lines(const json& group) {
    json rows = group["runs"];
    for (json& row : rows) {
        std::string missing;
        for (const json& host : row["not_on"])
            missing += (missing.empty() ? "; not on " : ", ") + text_of(host);
        if (!missing.empty()) row["reason"] = text_of(row["reason"]) + missing;
    }
    Lines lines = rows.empty() ? Lines{{{"no runs"}}} : runs_lines(rows);
    for (const auto& [host, list] : group["hosts"].items()) {
        if (list.contains("failure"))
            lines.push_back({{fmt::format("  {}: {}", host, text_of(list["failure"])), Style::bad}});
    }
    return lines;
}

}  // namespace petacq::petctl
