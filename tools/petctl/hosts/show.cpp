#include <sysexits.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "tools/petctl/commands.hpp"
#include "tools/petctl/hosts/commands.hpp"
#include "tools/petctl/hosts/summary.hpp"

namespace petacq::petctl {

using nlohmann::json;

namespace {

std::string text_of_document(const json& document, int indent) {
    return document.dump(indent, ' ', false, json::error_handler_t::replace) + "\n";
}

void show(const json& document, bool as_json, Lines (*as_lines)(const json&)) {
    print(as_json ? text_of_document(document, 2) : joined(as_lines(document), colour_wanted()));
}

int exit_status(const std::vector<HostAnswer>& answers) {
    return std::all_of(answers.begin(), answers.end(),
                       [](const HostAnswer& answer) { return answer.reached; })
               ? 0
               : EX_UNAVAILABLE;
}

}  // namespace

int show_group_status(HostGroup& group, bool as_json) {
    const std::vector<HostAnswer> statuses = group.ask_status();
    show(group_status(statuses), as_json, group_status_lines);
    return exit_status(statuses);
}

int watch_group(HostGroup& group, bool as_json) {
    // All output has been flushed, so there is nothing to do on Ctrl-C. The launchers end with their input.
    std::signal(SIGINT, [](int) { ::_exit(0); });
    std::signal(SIGTERM, [](int) { ::_exit(0); });
    // The first answer comes over a new connection.
    constexpr std::chrono::seconds grace{3};
    const bool redraw = ::isatty(STDOUT_FILENO) == 1;
    for (auto next = std::chrono::steady_clock::now();; std::this_thread::sleep_until(next)) {
        const json document = group_status(group.watch_status(grace));
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
    const json document = group_ledger(ledgers);
    show(document, as_json, group_ledger_lines);
    if (const int status = exit_status(ledgers); status != 0) return status;
    return document["closed"] == true ? 0 : exit_refused;
}

}  // namespace petacq::petctl
