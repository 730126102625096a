// petctl: starts and stops runs of petacqd and shows its status.
#include <fmt/core.h>
#include <sysexits.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "daemon/control_client.hpp"
#include "tools/petctl/status_text.hpp"

namespace {

using nlohmann::json;
using petacq::daemon::ControlClient;
using petacq::daemon::ControlUnavailable;
using petacq::daemon::RpcError;
namespace petctl = petacq::petctl;

constexpr int exit_refused = 1;  // or the run that was stopped is not whole

std::string dumped(const json& document, int indent) {
    return document.dump(indent, ' ', false, json::error_handler_t::replace);
}

void show(const json& status, bool as_json, bool redraw) {
    if (redraw) {
        const std::string text = as_json ? dumped(status, 2) + "\n" : petctl::status_text(status);
        fmt::print("\x1b[H\x1b[2J{}", text);
    } else {
        fmt::print("{}\n", as_json ? dumped(status, -1) : petctl::status_line(status));
    }
    std::fflush(stdout);
}

int watch(ControlClient& client, bool as_json) {
    // Everything shown was flushed: nothing is left to do on Ctrl-C.
    std::signal(SIGINT, [](int) { ::_exit(0); });
    std::signal(SIGTERM, [](int) { ::_exit(0); });
    const bool redraw = ::isatty(STDOUT_FILENO) == 1;
    show(client.call("subscribe", {{"interval_s", 1.0}}), as_json, redraw);
    while (const auto notification = client.next_notification()) {
        show(notification->value("params", json::object()), as_json, redraw);
    }
    return 0;
}

int stop_run(ControlClient& client) {
    const json result = client.call("stop", json::object(), ControlClient::for_ever);
    fmt::print("{}\n", petctl::stop_line(result));
    if (std::fflush(stdout) != 0) throw std::runtime_error("cannot write to the standard output");
    const auto problems = petctl::stop_problems(result);
    for (const std::string& problem : problems)
        fmt::print(stderr, "petctl: {}\n", problem);
    return problems.empty() ? 0 : exit_refused;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{"petctl: starts and stops runs of petacqd and shows its status"};
    app.require_subcommand(1);
    app.fallthrough();  // --socket may stand behind the command too
    std::string socket = "/run/petacqd/control.sock";
    app.add_option("--socket", socket, "Control socket of the daemon")
        ->envname("PETACQ_SOCKET")
        ->capture_default_str();

    std::string run;
    std::string note;
    double duration_s = 0;
    CLI::App* start = app.add_subcommand("start", "Start a run");
    start->add_option("--run", run, "Run id; without it the daemon names the run");
    start->add_option("--duration", duration_s, "Stop after so many seconds of detector time")
        ->check([](const std::string& text) {
            double value = 0;
            const bool good = CLI::detail::lexical_cast(text, value) && std::isfinite(value) && value > 0;
            return good ? std::string() : "expected a finite number of seconds above 0, found " + text;
        });
    start->add_option("--note", note, "Free text kept with the run");

    const CLI::App* stop = app.add_subcommand("stop", "Stop the run and wait until it is on disk");

    bool as_json = false;
    bool watching = false;
    CLI::App* status = app.add_subcommand("status", "Show the status");
    status->add_flag("--json", as_json, "As JSON");
    status->add_flag("--watch", watching, "Again every second, until Ctrl-C");

    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : EX_USAGE;
    }

    try {
        ControlClient client(socket);
        if (*start) {
            json params = json::object();
            if (start->count("--run") > 0) params["run"] = run;
            if (start->count("--duration") > 0) params["duration_s"] = duration_s;
            if (start->count("--note") > 0) params["note"] = note;
            const json result = client.call("start", params);
            const json name = result.is_object() ? result.value("run", json()) : json();
            fmt::print("run {} started\n", name.is_string() ? petctl::printable(name) : "-");
        } else if (*stop) {
            return stop_run(client);
        } else if (watching) {
            return watch(client, as_json);
        } else {
            const json document = client.call("status");
            fmt::print("{}", as_json ? dumped(document, 2) + "\n" : petctl::status_text(document));
        }
        if (std::fflush(stdout) != 0) throw std::runtime_error("cannot write to the standard output");
        return 0;
    } catch (const RpcError& error) {
        fmt::print(stderr, "petctl: {}\n", petctl::printable(error.what()));
        return exit_refused;
    } catch (const ControlUnavailable& error) {
        fmt::print(stderr, "{}\n", petctl::printable(error.what()));
        return EX_UNAVAILABLE;
    } catch (const std::exception& error) {
        fmt::print(stderr, "petctl: {}\n", error.what());
        return EX_SOFTWARE;
    }
}
