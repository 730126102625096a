#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "config/base/answer.hpp"
#include "config/base/exit_status.hpp"
#include "tools/petctl/hosts/commands.hpp"
#include "tools/petctl/hosts/summary.hpp"
#include "tools/petctl/text/history_text.hpp"
#include "tools/petctl/text/values.hpp"

namespace petacq::petctl {

using nlohmann::json;

namespace {

std::string text_of_document(const json& document, int indent) {
    return document.dump(indent, ' ', false, json::error_handler_t::replace) + "\n";
}

void show(const json& document, bool as_json, Lines (*as_lines)(const json&)) {
    print(as_json ? text_of_document(document, 2) : joined(as_lines(document), colour_wanted()));
}

/// Whether a host of each unit has answered.
template <class Answers>
int exit_status(const Answers& answers, const HostPairs& pairs) {
    const auto reached = [&](const std::string& host) {
        return std::any_of(answers.begin(), answers.end(),
                           [&](const auto& answer) { return answer.host == host && answer.reached; });
    };
    const auto& units = pairs.units();
    return std::all_of(units.begin(), units.end(),
                       [&](const auto& unit) { return std::any_of(unit.begin(), unit.end(), reached); })
               ? 0
               : exit_status::unavailable;
}

}  // namespace

int show_group_status(HostGroup& group, bool as_json) {
    const std::vector<HostAnswer> statuses = group.ask_status();
    show(group_status(statuses, group.pairs()), as_json, group_status_lines);
    return exit_status(statuses, group.pairs());
}

int watch_group(HostGroup& group, bool as_json) {
    // All output has been flushed, so there is nothing to do on Ctrl-C. The launchers end with their input.
    std::signal(SIGINT, [](int) { ::_exit(0); });
    std::signal(SIGTERM, [](int) { ::_exit(0); });
    // The first answer comes over a new connection.
    constexpr std::chrono::seconds grace{3};
    const bool redraw = ::isatty(STDOUT_FILENO) == 1;
    for (auto next = std::chrono::steady_clock::now();; std::this_thread::sleep_until(next)) {
        const json document = group_status(group.watch_status(grace), group.pairs());
        if (redraw) {
            print("\x1b[H\x1b[2J" + (as_json ? text_of_document(document, 2)
                                             : joined(group_status_lines(document), colour_wanted())));
        } else {
            print(as_json ? text_of_document(document, -1) : group_status_line(document) + "\n");
        }
        next = std::max(next + std::chrono::seconds(1), std::chrono::steady_clock::now());
    }
}

int show_group_ledger(HostGroup& group, const std::optional<std::string>& run, bool as_json) {
    json parameters = json::object();
    if (run) parameters["run"] = *run;
    const std::vector<HostAnswer> ledgers = group.ask(group.names(), "ledger", parameters);
    const json document = group_ledger(ledgers, group.pairs());
    show(document, as_json, group_ledger_lines);
    if (const int status = exit_status(ledgers, group.pairs()); status != 0) return status;
    return document["closed"] == true ? exit_status::ok : exit_status::has_problems;
}

int show_group_runs(HostGroup& group, std::optional<std::size_t> last, bool as_json) {
    std::vector<HostRuns> lists;
    const RunList all(last);
    // Most hosts answer with all they have.
    for (const HostAnswer& answer : group.ask(group.names(), "runs", *all.next())) {
        lists.push_back({answer.host, all, answer.failure, answer.reached});
        if (answer.good()) lists.back().runs.add(answer.result());
    }
    for (HostRuns& list : lists) {
        for (auto next = list.runs.next(); next && list.failure.empty(); next = list.runs.next()) {
            const HostAnswer answer = group.ask(std::vector{list.host}, "runs", *next).front();
            list.failure = answer.failure;
            list.reached = answer.reached;
            if (answer.good()) list.runs.add(answer.result());
        }
    }
    show(group_runs(lists, last, group.pairs()), as_json, group_runs_lines);
    return exit_status(lists, group.pairs());
}

int show_group_history(HostGroup& group, const json& parameters, bool as_json) {
    const std::vector<HostAnswer> answers = group.ask(group.names(), "history", parameters);
    show(group_history(answers), as_json, group_history_lines);
    if (const int status = exit_status(answers, group.pairs()); status != 0) return status;
    const bool refused = std::any_of(answers.begin(), answers.end(), [](const HostAnswer& answer) {
        return answer.reached && !answer.good();
    });
    return refused ? exit_status::has_problems : exit_status::ok;
}

int acknowledge_group(HostGroup& group, const std::vector<std::string>& runs, bool as_json) {
    int status = 0;
    json document = json::object();
    for (const std::string& run : runs) {
        const std::vector<HostAnswer> answers = group.ask(group.names(), "acknowledge", {{"run", run}});
        std::vector<std::string> done;
        bool refused = false;
        for (const HostAnswer& answer : answers) {
            if (answer.good()) {
                done.push_back(answer.host);
                continue;
            }
            config::print_error("petctl", fmt::format("{}: {}", answer.host, answer.failure));
            // On a host that stopped it as it should.
            refused =
                refused || !answer.failure.ends_with("was not interrupted, or somebody has acknowledged it");
        }
        document[run] = done;
        if (!done.empty() && !as_json)
            print(fmt::format("run {} acknowledged as interrupted on {}\n", run, fmt::join(done, ", ")));
        if (done.empty() || refused) status = std::max<int>(status, exit_status::has_problems);
        status = std::max(status, exit_status(answers, group.pairs()));
    }
    if (as_json) print_json({{"acknowledged", document}});
    return status;
}

int mark_group(HostGroup& group, const std::string& text, bool as_json) {
    const std::vector<HostAnswer> answers = group.ask(group.names(), "mark", {{"text", text}});
    json document = json::object();
    for (const HostAnswer& answer : answers) {
        if (!answer.good()) {
            config::print_error("petctl", fmt::format("{}: {}", answer.host, answer.failure));
            continue;
        }
        document[answer.host] = answer.result();
        if (!as_json) print(answer.host + ": " + mark_text(answer.result()));
    }
    if (as_json) print_json({{"marked", document}});
    const auto& units = group.pairs().units();
    const bool all = std::all_of(units.begin(), units.end(), [&](const auto& unit) {
        return std::any_of(unit.begin(), unit.end(),
                           [&](const std::string& host) { return document.contains(host); });
    });
    const int status = exit_status(answers, group.pairs());
    return all || status != 0 ? status : exit_status::has_problems;
}

}  // namespace petacq::petctl
