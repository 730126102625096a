#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include "config/base/answer.hpp"
#include "config/base/exit_status.hpp"
#include "daemon/peer/run_names.hpp"
#include "tools/petctl/hosts/commands.hpp"
#include "tools/petctl/hosts/common_time.hpp"
#include "tools/petctl/hosts/summary.hpp"
#include "tools/petctl/text/values.hpp"

namespace petacq::petctl {

using daemon::joined_run;
using nlohmann::json;

namespace {

const HostAnswer& of_host(const std::vector<HostAnswer>& answers, const std::string& host) {
    return *std::find_if(answers.begin(), answers.end(),
                         [&](const HostAnswer& answer) { return answer.host == host; });
}

void tell(const std::string& host, const std::string& what) {
    config::print_error("petctl", fmt::format("{}: {}", host, what));
}

/// The ids of the latest runs of the host.
std::set<std::string> runs_of(HostGroup& group, const std::string& host) {
    constexpr unsigned most = 1000;
    std::set<std::string> ids;
    const HostAnswer answer = group.ask(std::vector{host}, "runs", {{"limit", most}}).front();
    if (const json& runs = at(answer.result(), {"runs"}); runs.is_array())
        for (const json& run : runs)
            ids.insert(text_of(at(run, {"run"})));
    return ids;
}

/// Starts the run of the others on a host that joins, with the first id of NAME, NAME-2, NAME-3, ... that is
/// free there.
HostAnswer start_joined(HostGroup& group, const std::string& host, const std::string& run, json parameters) {
    const std::set<std::string> there = runs_of(group, host);
    const std::string name = joined_run(run, [&](const std::string& id) { return there.contains(id); });
    std::string id = name;
    HostAnswer answer;
    for (unsigned number = 2; number < 100; ++number) {
        if (!there.contains(id)) {
            parameters["run"] = id;
            answer = group.ask(std::vector{host}, "start", parameters).front();
            // A run that is older than those that were listed.
            if (answer.good() || answer.failure.find("already used") == std::string::npos) break;
        }
        id = fmt::format("{}-{}", name, number);
    }
    return answer;
}

/// The parameters of `start` that make a host join a run, as the status of another host has it.
json parameters_for(const json& run, std::uint64_t start_ticks, const TimedStatus& status) {
    json parameters = {{"start_ticks", start_ticks}};
    if (const json& stop = at(run, {"stop_ticks"}); stop.is_number_unsigned()) {
        parameters["stop_ticks"] = stop;
    } else if (const json& duration = at(run, {"duration_s"}); duration.is_number()) {
        const auto length = ticks_in(duration.get<double>(), status);
        if (const json& began = at(run, {"start_ticks"}); length && began.is_number_unsigned())
            parameters["stop_ticks"] = began.get<std::uint64_t>() + *length;
    }
    if (const json& note = at(run, {"note"}); note.is_string() && note != "") parameters["note"] = note;
    const json& said = at(run, {"operator"});
    if (!said.is_object()) return parameters;
    for (const auto& [name, value] : said.items())
        if (name != "activity_at_start_MBq") parameters[name] = value;  // follows from the others
    return parameters;
}

}  // namespace

int join_group(HostGroup& group, bool as_json) {
    const TimedStatus status = TimedStatus::of(group, group.names());
    int worst = exit_status::ok;
    json joined = json::array();
    for (const std::string& host : group.names()) {
        const HostAnswer& own = of_host(status.answers, host);
        const json* run = nullptr;
        std::string partner;
        for (const std::string& other : group.pairs().partners(host)) {
            const json& of_other = at(of_host(status.answers, other).result(), {"run"});
            if (run != nullptr || !of_other.is_object() || at(of_other, {"waiting"}) == true) continue;
            run = &of_other;
            partner = other;
        }
        if (run == nullptr) continue;
        if (!own.good()) {
            tell(host, own.failure);
            worst = exit_status::unavailable;
            continue;
        }
        if (at(own.result(), {"run"}).is_object()) continue;
        // It may have been updated meanwhile.
        const auto differences = disagreements({own, of_host(status.answers, partner)}, false);
        for (const std::string& line : differences)
            tell(host, line);
        const auto start = time_ahead(status);
        if (!start) tell(host, "no host tells watermark and tick");
        if (!start || !differences.empty()) {
            worst = exit_status::has_problems;
            continue;
        }
        const HostAnswer answer =
            start_joined(group, host, text_of(at(*run, {"id"})), parameters_for(*run, *start, status));
        if (!answer.good()) {
            tell(host, answer.failure);
            worst = exit_status::has_problems;
            continue;
        }
        joined.push_back({{"host", host},
                          {"run", at(answer.result(), {"run"})},
                          {"partner", partner},
                          {"run_of_partner", at(*run, {"id"})},
                          {"start_ticks", *start}});
        if (as_json) continue;
        print(fmt::format("{} joins run {} of {} with its run {}, from {} ticks\n", host,
                          printable(text_of(at(*run, {"id"}))), partner,
                          printable(text_of(at(answer.result(), {"run"}))), *start));
    }
    if (as_json) {
        print_json({{"joined", joined}});
    } else if (joined.empty() && worst == exit_status::ok) {
        print("no host of a pair lacks the run of its partner\n");
    }
    return worst;
}

}  // namespace petacq::petctl
