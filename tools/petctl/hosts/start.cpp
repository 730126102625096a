#include <fmt/core.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "daemon/host/utc.hpp"
#include "tools/petctl/commands.hpp"
#include "tools/petctl/hosts/commands.hpp"
#include "tools/petctl/hosts/common_time.hpp"
#include "tools/petctl/hosts/summary.hpp"
#include "tools/petctl/status_text.hpp"
#include "tools/petctl/values.hpp"

namespace petacq::petctl {

using nlohmann::json;

namespace {

void complain(const std::string& host, const std::string& what) {
    fmt::print(stderr, "petctl: {}{}{}\n", host, host.empty() ? "" : ": ", what);
}

/// Names what keeps the hosts from starting; whether there is anything.
bool hindered(const TimedStatus& status) {
    bool found = false;
    for (const HostAnswer& answer : status.answers) {
        const json& state = at(answer.result(), {"state"});
        std::string why = answer.failure;
        if (answer.good() && state != "idle") {
            why = "expected state idle, found " + text_of(state);
            if (const json& run = at(answer.result(), {"run", "id"}); run.is_string())
                why += ": run " + text_of(run) + " is in progress; stop it first";
        }
        if (why.empty()) continue;
        complain(answer.host, why);
        found = true;
    }
    for (const std::string& line : disagreements(status.answers)) {
        complain("", line);
        found = true;
    }
    return found;
}

/// Adds what must be the same on all hosts. False if the hosts do not tell enough.
bool settle(json& parameters, const TimedStatus& status) {
    if (!parameters.contains("run")) {
        const auto now = std::chrono::system_clock::now();
        parameters["run"] = daemon::utc_text(now, "%Y%m%dT%H%M%SZ");
    }
    if (!parameters.contains("start_ticks")) {
        const auto start = time_ahead(status);
        if (!start) return false;
        parameters["start_ticks"] = *start;
    }
    if (!parameters.contains("duration_s")) return true;
    // Alone, each host would count from its own first frame.
    const auto length = ticks_in(parameters["duration_s"].get<double>(), status);
    if (!length) return false;
    parameters["stop_ticks"] = parameters["start_ticks"].get<std::uint64_t>() + *length;
    parameters.erase("duration_s");
    return true;
}

/// Some have refused: the others give their run up again.
void take_back(HostGroup& group, const std::vector<HostAnswer>& started, const std::string& run) {
    std::vector<std::string> hosts;
    for (const HostAnswer& answer : started) {
        // One that did not answer may have started.
        if (answer.good() || !answer.reached) hosts.push_back(answer.host);
    }
    for (const HostAnswer& answer : group.ask(hosts, "stop", json::object())) {
        if (never_began(answer.result())) continue;
        if (answer.good()) {
            complain(answer.host, "run " + run + " had started; it was stopped and kept");
        } else if (!answer.reached) {
            complain(answer.host, "run " + run + " may wait or run there; stop it: " + answer.failure);
        }
    }
}

}  // namespace

int start_group(HostGroup& group, json parameters) {
    const TimedStatus status = TimedStatus::of(group, group.names());
    if (hindered(status)) {
        complain("", "no run was started on any host");
        return exit_refused;
    }
    if (!settle(parameters, status)) {
        complain("", "no host tells watermark and tick; no run was started on any host");
        return exit_refused;
    }
    const std::string run = printable(parameters["run"]);
    const std::vector<HostAnswer> answers = group.ask(group.names(), "start", parameters);
    bool failed = false;
    for (const HostAnswer& answer : answers) {
        if (answer.good()) continue;
        complain(answer.host, answer.failure);
        failed = true;
    }
    if (failed) {
        take_back(group, answers, run);
        complain("", "run " + run + " was started on no host, or taken back");
        return exit_refused;
    }
    print(fmt::format("run {} started on {} host{}, from {} ticks\n", run, answers.size(),
                      answers.size() == 1 ? "" : "s", parameters["start_ticks"].get<std::uint64_t>()));
    return 0;
}

}  // namespace petacq::petctl
