#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>

#include "config/base/answer.hpp"
#include "config/base/exit_status.hpp"
#include "daemon/system/quantity_text.hpp"
#include "daemon/system/utc.hpp"
#include "tools/petctl/hosts/commands.hpp"
#include "tools/petctl/hosts/common_time.hpp"
#include "tools/petctl/hosts/summary.hpp"
#include "tools/petctl/text/start_times.hpp"
#include "tools/petctl/text/status_text.hpp"
#include "tools/petctl/text/values.hpp"

namespace petacq::petctl {

using nlohmann::json;

namespace {

std::atomic<bool> interrupted = false;

void note_interrupt(int) {
    constexpr std::string_view text =
        "petctl: interrupted; when all hosts have answered, within 20 s, they give the run up\n";
    if (!interrupted.exchange(true)) (void)!::write(STDERR_FILENO, text.data(), text.size());
}

/// From here to the end of the program, since some hosts may have started when the operator ends it.
void heed_interrupts() {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        // Whoever ignores it, as nohup does, wants that.
        if (std::signal(signal, note_interrupt) == SIG_IGN) std::signal(signal, SIG_IGN);
    }
}

/// Throws nothing if nobody reads it: a terminal may have gone while hosts are still to be stopped.
void complain(const std::string& host, const std::string& what) {
    config::print_error("petctl", fmt::format("{}{}{}", host, host.empty() ? "" : ": ", what));
}

/// Whether the answer of a partner of the host is good.
bool partner_answers(const HostPairs& pairs, const std::vector<HostAnswer>& answers,
                     const std::string& host) {
    return pairs.partner_is(host, [&](const std::string& partner) {
        return std::any_of(answers.begin(), answers.end(),
                           [&](const HostAnswer& answer) { return answer.host == partner && answer.good(); });
    });
}

/// Leaves out hosts that do not answer, but whose partner does.
void leave_out_missing(const HostPairs& pairs, TimedStatus& status) {
    std::vector<HostAnswer> there;
    for (const HostAnswer& answer : status.answers) {
        if (answer.good() || !partner_answers(pairs, status.answers, answer.host)) {
            there.push_back(answer);
            continue;
        }
        complain(answer.host, answer.failure + "; the run starts without it, petctl join takes it up");
    }
    status.answers = std::move(there);
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

/// Adds what must be the same on all hosts. False if the hosts do not tell enough. Throws config::Error for a
/// time that is no number of ticks.
bool settle(json& parameters, const TimedStatus& status) {
    if (!parameters.contains("run")) {
        const auto now = std::chrono::system_clock::now();
        parameters["run"] = daemon::utc_text(now, "%Y%m%dT%H%M%SZ");
    }
    if (in_seconds(parameters)) {
        const auto tick = tick_ps(status);
        if (!tick) return false;
        replace_seconds(parameters, *tick);
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

/// The hosts that have started give their run up again.
void take_back(HostGroup& group, const std::vector<HostAnswer>& started, const std::string& run) {
    std::vector<std::string> hosts;
    std::vector<std::string> unknown;
    for (const HostAnswer& answer : started) {
        if (answer.good()) hosts.push_back(answer.host);
        if (!answer.reached) unknown.push_back(answer.host);
    }
    const auto name_unknown = [&](const HostAnswer& answer) {
        if (!answer.reached)
            complain(answer.host, "run " + run + " may wait or run there; stop it: " + answer.failure);
    };
    // One that did not answer may have started, this run or, meanwhile, that of somebody else.
    for (const HostAnswer& answer : group.ask_status(unknown)) {
        name_unknown(answer);
        if (at(answer.result(), {"run", "id"}) == run) hosts.push_back(answer.host);
    }
    for (const HostAnswer& answer : group.ask(hosts, "stop", {{"run", run}})) {
        name_unknown(answer);
        if (answer.good() && !never_began(answer.result()))
            complain(answer.host, "run " + run + " had started; it was stopped and kept");
    }
}

}  // namespace

int start_group(HostGroup& group, json parameters, bool as_json) {
    TimedStatus status = TimedStatus::of(group, group.names());
    leave_out_missing(group.pairs(), status);
    if (hindered(status)) {
        complain("", "no run was started on any host");
        return exit_status::has_problems;
    }
    const double asked_in_ps = in_seconds(parameters) ? tick_ps(status).value_or(0) : 0;  // 0: in ticks
    const auto failure_of = [&](const HostAnswer& answer) {
        return asked_in_ps > 0 ? refusal_in_seconds(answer.failure, asked_in_ps) : answer.failure;
    };
    if (!settle(parameters, status)) {
        complain("", "no host tells watermark and tick; no run was started on any host");
        return exit_status::has_problems;
    }
    const std::string run = printable(parameters["run"].get<std::string>());
    heed_interrupts();
    std::vector<std::string> hosts;
    for (const HostAnswer& answer : status.answers)
        hosts.push_back(answer.host);
    const std::vector<HostAnswer> answers = group.ask(hosts, "start", parameters);
    bool failed = interrupted;
    std::vector<std::string> started;
    for (const HostAnswer& answer : answers) {
        if (answer.good()) {
            started.push_back(answer.host);
            continue;
        }
        complain(answer.host, failure_of(answer));
        failed = failed || !partner_answers(group.pairs(), answers, answer.host);
    }
    if (failed) {
        take_back(group, answers, run);
        complain("", "run " + run + " was started on no host, or taken back");
        return exit_status::has_problems;
    }
    // The hosts agree on the gammas.
    const std::string note = gammas_note(parameters, status.answers.front().result());
    if (as_json) {
        json document = {
            {"run", parameters["run"]}, {"hosts", started}, {"start_ticks", parameters["start_ticks"]}};
        if (!note.empty()) document["note"] = note;
        print_json(document);
        return 0;
    }
    const auto start = parameters["start_ticks"].get<std::uint64_t>();
    print(fmt::format("run {} started on {}, from {}\n", run, daemon::counted_text(started.size(), "host"),
                      asked_in_ps > 0
                          ? fmt::format("{:.9g} s", static_cast<double>(start) * asked_in_ps * 1e-12)
                          : fmt::format("{} ticks", start)));
    if (!note.empty()) print(printable(note) + "\n");
    return 0;
}

}  // namespace petacq::petctl
