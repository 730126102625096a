// petctl: starts and stops runs of petacqd and shows its state.
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "config/base/answer.hpp"
#include "config/base/error.hpp"
#include "config/base/exit_status.hpp"
#include "config/choices.hpp"
#include "config/command_line/command_line.hpp"
#include "daemon/control/client.hpp"
#include "tools/petctl/commands.hpp"
#include "tools/petctl/doctor/doctor.hpp"
#include "tools/petctl/frames/frames.hpp"
#include "tools/petctl/hosts/commands.hpp"
#include "tools/petctl/text/history_text.hpp"
#include "tools/petctl/text/source_check.hpp"
#include "tools/petctl/text/values.hpp"

namespace {

using nlohmann::json;
using petacq::daemon::ControlClient;
using petacq::daemon::ControlUnavailable;
using petacq::daemon::RpcError;
using petacq::petctl::HostGroup;
namespace petctl = petacq::petctl;

constexpr double longest_listening_s = 3600;
constexpr const char* default_socket = "/run/petacqd/control.sock";

struct Arguments {
    std::string socket = default_socket;
    std::vector<std::string> hosts;
    std::string run;
    std::string note;
    std::string nuclide;
    double half_life_s = 0;
    double branching_ratio = 0;
    std::string nuclide_source;
    std::string assay;
    std::string subject;
    std::vector<std::string> keys;
    std::string file;
    std::string configuration;
    std::string source;
    std::string level;
    std::string since = "24h";
    std::string until;
    std::vector<std::string> runs;
    std::vector<std::string> words;
    double duration_s = 0;
    double seconds = 5;
    std::uint64_t from_ticks = 0;
    std::uint64_t to_ticks = 0;
    std::string from_s;  // decimal numbers, of which no digit may be lost
    std::string to_s;
    double activity_MBq = 0;  // NOLINT(readability-identifier-naming): a unit
    double bed_mm = 0;
    std::size_t last = 0;
    std::size_t count = 20;
    bool as_json = false;
    bool full = false;
    bool watching = false;

    [[nodiscard]] petctl::Form form() const {
        if (as_json) return petctl::Form::document;
        return full ? petctl::Form::full : petctl::Form::summary;
    }
};

/// The parameter `keys`. The daemon checks names and values, but cannot see that a name was given twice.
json keys_of(const std::vector<std::string>& arguments) {
    json keys = json::object();
    for (const std::string& argument : arguments) {
        const auto equals = argument.find('=');
        if (equals == std::string::npos)
            throw CLI::ValidationError("--key", "expected name=value, found " + argument);
        const std::string name = argument.substr(0, equals);
        if (!keys.emplace(name, argument.substr(equals + 1)).second)
            throw CLI::ValidationError("--key", name + " was given twice");
    }
    return keys;
}

/// The parameters of `start` that were given.
json start_parameters(const CLI::App& start, const Arguments& a) {
    json parameters = json::object();
    const auto set = [&](const char* option, const char* parameter, const auto& value) {
        if (start.count(option) > 0) parameters[parameter] = value;
    };
    set("--run", "run", a.run);
    set("--duration", "duration_s", a.duration_s);
    set("--from-ticks", "start_ticks", a.from_ticks);
    set("--to-ticks", "stop_ticks", a.to_ticks);
    set("--from-s", "start_s", a.from_s);
    set("--to-s", "stop_s", a.to_s);
    set("--note", "note", a.note);
    set("--nuclide", "nuclide", a.nuclide);
    set("--half-life-s", "half_life_s", a.half_life_s);
    set("--branching-ratio", "branching_ratio", a.branching_ratio);
    set("--nuclide-source", "nuclide_source", a.nuclide_source);
    set("--activity-MBq", "activity_MBq", a.activity_MBq);
    set("--assay", "assay_utc", a.assay);
    set("--bed-mm", "bed_mm", a.bed_mm);
    set("--subject", "subject", a.subject);
    if (!a.keys.empty()) parameters["keys"] = keys_of(a.keys);
    try {
        petctl::complete_source(parameters, std::chrono::system_clock::now());
    } catch (const std::invalid_argument& error) {
        throw CLI::ValidationError(error.what());
    }
    return parameters;
}

/// Starts, and then says what is doubtful about what was said of the source: what the daemon refuses needs no
/// doubt.
int start_with_doubts(const json& parameters, const std::function<int()>& start) {
    const int status = start();
    for (const std::string& doubt : petctl::source_doubts(parameters, std::chrono::system_clock::now()))
        petacq::config::print_warning("petctl", petctl::printable(doubt));
    return status;
}

/// The ids of the latest runs of the daemon; none if it does not answer at once. For completion.
std::vector<std::string> run_ids(const std::vector<std::string>& words) {
    constexpr std::chrono::seconds patience{2};
    const char* const named = std::getenv("PETACQ_SOCKET");
    std::string socket = named != nullptr && *named != '\0' ? named : default_socket;
    for (std::size_t i = 0; i + 1 < words.size(); ++i)
        if (words[i] == "--socket") socket = words[i + 1];
    std::vector<std::string> ids;
    try {
        ControlClient client(socket);
        const json answer = client.call("runs", {{"limit", 100}}, patience);
        for (const json& run : petctl::at(answer, {"runs"}))
            ids.push_back(petctl::text_of(petctl::at(run, {"run"})));
    } catch (const std::exception&) {  // completion has no place for it
    }
    return ids;
}

/// For completion: options that take runs, or text that no file is the name of.
std::optional<std::vector<std::string>> values_of(const petacq::config::ValueAsked& asked) {
    if (asked.option == "RUN" || (asked.option == "--run" && asked.command != "start"))
        return run_ids(asked.words);
    if (asked.option == "--assay") return std::vector<std::string>{"now"};
    constexpr std::array free_text{"--run", "--note",   "--nuclide-source", "--subject",
                                   "--key", "--source", "--hosts"};
    if (std::find(free_text.begin(), free_text.end(), asked.option) != free_text.end())
        return std::vector<std::string>{};
    return std::nullopt;
}

constexpr const char* only_these =
    "only start, join, stop, mark, status, watch, ledger, runs, history and acknowledge act on several hosts";

/// Adds the commands. The one that is parsed sets `action`.
void add_commands(CLI::App& app, Arguments& a, std::function<int()>& action) {
    // The client connects only when the action runs, since --file needs no daemon.
    const auto with_client = [&a, &action](auto function) {
        return [&a, &action, function] {
            if (!a.hosts.empty()) throw CLI::ValidationError("--hosts", only_these);
            action = [&a, function] {
                ControlClient client(a.socket);
                return function(client);
            };
        };
    };
    const auto with_either = [&a, &action, with_client](auto for_one, auto for_several) {
        return [&a, &action, with_client, for_one, for_several] {
            if (a.hosts.empty()) return with_client(for_one)();
            // Each host has its own default.
            const std::string socket = a.socket == default_socket ? "" : a.socket;
            try {
                const auto group = std::make_shared<HostGroup>(a.hosts, socket);
                action = [group, for_several] { return for_several(*group); };
            } catch (const std::invalid_argument& error) {
                throw CLI::ValidationError("--hosts", error.what());
            }
        };
    };

    const auto add_json = [&a](CLI::App& command) {
        return command.add_flag("--json", a.as_json, "Print JSON");
    };

    CLI::App* start = app.add_subcommand("start", "Start a run");
    start->add_option("--run", a.run, "Run id; without it the daemon names the run");
    auto* duration =
        start->add_option("--duration", a.duration_s, "Stop after this many seconds of detector time");
    auto* from_ticks = start->add_option(
        "--from-ticks", a.from_ticks,
        "Start at this detector time, which must be ahead; several hosts then start together");
    auto* to_ticks =
        start->add_option("--to-ticks", a.to_ticks, "Stop at this detector time")->excludes(duration);
    start->add_option("--from-s", a.from_s, "The same start in seconds of detector time")
        ->type_name("FLOAT")
        ->excludes(from_ticks);
    start->add_option("--to-s", a.to_s, "The same stop in seconds of detector time")
        ->type_name("FLOAT")
        ->excludes(to_ticks)
        ->excludes(duration);
    start->add_option("--note", a.note, "Free text kept with the run");
    start->add_option("--nuclide", a.nuclide, "Nuclide of the source")
        ->type_name(petacq::config::nuclide_type());
    start->add_option("--half-life-s", a.half_life_s, "Of a nuclide that is missing in the table");
    start->add_option("--branching-ratio", a.branching_ratio, "Its positrons per decay");
    start->add_option("--nuclide-source", a.nuclide_source, "Where these two values come from");
    start->add_option("--activity-MBq", a.activity_MBq, "Its activity at the time of the assay");
    start->add_option("--assay", a.assay,
                      "When the activity was measured: now, or a time such as 2026-11-20T18:45:00Z");
    start->add_option("--bed-mm", a.bed_mm, "Position of the bed");
    start->add_option("--subject", a.subject, "Subject or phantom");
    start->add_option("--key", a.keys, "name=value, kept with the run; may be repeated")
        ->allow_extra_args(false);
    add_json(*start);
    start->callback([&a, start, with_either] {
        const json parameters = start_parameters(*start, a);
        with_either(
            [&a, parameters](ControlClient& client) {
                return start_with_doubts(parameters,
                                         [&] { return petctl::start_run(client, parameters, a.as_json); });
            },
            [&a, parameters](HostGroup& group) {
                return start_with_doubts(parameters,
                                         [&] { return petctl::start_group(group, parameters, a.as_json); });
            })();
    });

    CLI::App* join = app.add_subcommand(
        "join", "With --hosts a+b: start the run of one of them on the other, which has come back");
    add_json(*join);
    join->callback([&a, with_either] {
        if (a.hosts.empty()) throw CLI::ValidationError("join", "needs --hosts with a pair of hosts, a+b");
        with_either([](ControlClient&) { return 0; },
                    [&a](HostGroup& group) { return petctl::join_group(group, a.as_json); })();
    });

    CLI::App* stop = app.add_subcommand("stop", "Stop the run and wait until it is on disk");
    stop->add_option("--run", a.run, "Id of the run; refused if another run is in progress");
    add_json(*stop);
    stop->callback([&a, stop, with_either] {
        const json parameters = stop->count("--run") > 0 ? json{{"run", a.run}} : json::object();
        with_either([&a, parameters](
                        ControlClient& client) { return petctl::stop_run(client, parameters, a.as_json); },
                    [&a, parameters](HostGroup& group) {
                        return petctl::stop_group(group, parameters, a.as_json);
                    })();
    });

    CLI::App* mark = app.add_subcommand("mark", "Note something in the run in progress, with the time");
    mark->add_option("TEXT", a.words, "What to note; several words need no quotes")->required();
    add_json(*mark);
    mark->callback(with_either(
        [&a](ControlClient& client) {
            return petctl::mark_run(client, fmt::format("{}", fmt::join(a.words, " ")), a.as_json);
        },
        [&a](HostGroup& group) {
            return petctl::mark_group(group, fmt::format("{}", fmt::join(a.words, " ")), a.as_json);
        }));

    CLI::App* status = app.add_subcommand("status", "Show the status on one screen");
    CLI::Option* json_wanted = add_json(*status);
    status->add_flag("--full", a.full, "Everything, with a row for each source and BDM")
        ->excludes(json_wanted);
    status->add_flag("--watch", a.watching, "Repeat every second until Ctrl-C");
    status->callback(with_either(
        [&a](ControlClient& client) {
            return a.watching ? petctl::watch_status(client, a.form())
                              : petctl::show_status(client, a.form());
        },
        [&a](HostGroup& group) {
            if (a.full) throw petacq::config::Error("--full shows one host; --hosts has a row for each");
            return a.watching ? petctl::watch_group(group, a.as_json)
                              : petctl::show_group_status(group, a.as_json);
        }));

    CLI::App* sources = app.add_subcommand("sources", "Show who is heard, known or unknown");
    sources->add_flag("--json", a.as_json, "Only the list, as the scanner description has it");
    sources->callback(
        with_client([&a](ControlClient& client) { return petctl::show_sources(client, a.as_json); }));

    CLI::App* doctor = app.add_subcommand(
        "doctor", "Listen to the boards; say what is wrong and what to write into the files");
    doctor->add_option("--seconds", a.seconds, "Listen for so long, in seconds")
        ->check(CLI::Range(longest_listening_s))
        ->capture_default_str();
    add_json(*doctor);
    doctor->callback(
        with_client([&a](ControlClient& client) { return petctl::doctor(client, a.seconds, a.as_json); }));

    CLI::App* frames =
        app.add_subcommand("frames", "Show datagrams that arrive, or those of a capture: bytes and fields");
    CLI::Option* capture = frames->add_option("CAPTURE", a.file, "pcap or pcapng; without it, what arrives");
    CLI::Option* configuration =
        frames
            ->add_option("-c,--config", a.configuration,
                         "Configuration that says how to read the capture; without it, that of the daemon")
            ->needs(capture);
    frames->add_option("--count", a.count, "Show at most this many frames, and as many datagrams")
        ->capture_default_str();
    frames->add_option("--source", a.source, "Of this source only: its id, or its address, also with a port");
    frames->add_option("--seconds", a.seconds, "Wait at most this long for them, in seconds")
        ->check(CLI::Range(longest_listening_s))
        ->capture_default_str()
        ->excludes(capture);
    frames->add_flag("--json", a.as_json, "Print JSON Lines: an object for each datagram");
    const auto asked_for = [&a] { return petctl::FramesAsked{a.count, a.source, a.as_json}; };
    const auto live = with_client([&a, capture, asked_for](ControlClient& client) {
        if (capture->count() == 0) return petctl::show_live_frames(client, asked_for(), a.seconds);
        return petctl::show_captured_frames(a.file, petctl::format_of_status(client.call("status")),
                                            asked_for());
    });
    frames->callback([&a, &action, configuration, live, asked_for] {
        if (configuration->count() == 0) return live();
        if (!a.hosts.empty()) throw CLI::ValidationError("--hosts", only_these);
        action = [&a, asked_for] {
            return petctl::show_captured_frames(a.file, petctl::format_of_files(a.configuration),
                                                asked_for());
        };
    });

    CLI::App* watch = app.add_subcommand("watch", "Show rates, health, sources and BDMs live; q quits");
    watch->callback(
        with_either([&a](ControlClient& client) { return petctl::watch_dashboard(client, a.socket); },
                    [](HostGroup& group) { return petctl::watch_group(group, false); }));

    CLI::App* ledger =
        app.add_subcommand("ledger", "Show the ledger of the run in progress or of the last run");
    CLI::Option* run = ledger->add_option("--run", a.run, "Show this run, which must have stopped");
    ledger->add_option("--file", a.file, "Show this run.json, or the run in this directory; needs no daemon")
        ->excludes(run);
    add_json(*ledger);
    const auto asked = [&a, run] { return run->count() > 0 ? std::optional(a.run) : std::nullopt; };
    const auto by_daemon = with_either(
        [&a, asked](ControlClient& client) { return petctl::show_ledger(client, asked(), a.as_json); },
        [&a, asked](HostGroup& group) { return petctl::show_group_ledger(group, asked(), a.as_json); });
    ledger->callback([&a, &action, ledger, by_daemon] {
        if (ledger->count("--file") == 0) return by_daemon();
        if (!a.hosts.empty()) throw CLI::ValidationError("--hosts", "needs no --file");
        action = [&a] { return petctl::show_ledger_of_file(a.file, a.as_json); };
    });

    CLI::App* runs = app.add_subcommand("runs", "List the runs on disk, the latest last");
    CLI::Option* last = runs->add_option("--last", a.last, "At most this many");
    add_json(*runs);
    const auto most = [&a, last] { return last->count() > 0 ? std::optional(a.last) : std::nullopt; };
    runs->callback(with_either(
        [&a, most](ControlClient& client) { return petctl::show_runs(client, most(), a.as_json); },
        [&a, most](HostGroup& group) { return petctl::show_group_runs(group, most(), a.as_json); }));

    CLI::App* history =
        app.add_subcommand("history", "Show what happened in the last hours: events, marks, rates");
    history->add_option("--since", a.since, "From then on: 2026-11-20T18:45:00Z, or 90min, 12h or 2d ago")
        ->capture_default_str();
    history->add_option("--until", a.until, "Before then, likewise; without it up to now");
    add_json(*history);
    const auto times = [&a, history] {
        const auto now = std::chrono::system_clock::now();
        json parameters = {{"since", petctl::history_time("--since", a.since, now)}};
        if (history->count("--until") > 0)
            parameters["until"] = petctl::history_time("--until", a.until, now);
        return parameters;
    };
    history->callback(with_either(
        [&a, times](ControlClient& client) { return petctl::show_history(client, times(), a.as_json); },
        [&a, times](HostGroup& group) { return petctl::show_group_history(group, times(), a.as_json); }));

    CLI::App* acknowledge =
        app.add_subcommand("acknowledge", "Confirm that runs were interrupted; ends the health reason");
    acknowledge->add_option("RUN", a.runs, "Ids of interrupted runs")->required();
    add_json(*acknowledge);
    acknowledge->callback(with_either(
        [&a](ControlClient& client) { return petctl::acknowledge_runs(client, a.runs, a.as_json); },
        [&a](HostGroup& group) { return petctl::acknowledge_group(group, a.runs, a.as_json); }));

    CLI::App* reload = app.add_subcommand(
        "reload", "Read the configuration and the calibration again; a run keeps its calibration");
    add_json(*reload);
    reload->callback(with_client([&a](ControlClient& client) { return petctl::reload(client, a.as_json); }));

    CLI::App* level = app.add_subcommand("log-level", "Show or set the log level of the running daemon");
    level->add_option("LEVEL", a.level, "Least important messages to log")
        ->check(CLI::IsMember(petacq::config::words<petacq::config::LogLevel>.names));
    add_json(*level);
    level->callback(
        with_client([&a](ControlClient& client) { return petctl::log_level(client, a.level, a.as_json); }));

    CLI::App* relay = app.add_subcommand(
        "relay", "Pass JSON-RPC on between standard input and output and the daemon, for petctl --hosts");
    relay->callback(with_client(petctl::relay));
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{"petctl: starts and stops runs of petacqd and shows its state"};
    app.require_subcommand(1);
    app.fallthrough();  // allows --socket after the command
    app.footer(
        "Exit status: 0 done, 1 refused or incomplete, 64 usage, 69 no daemon, 70 internal failure, 74 I/O "
        "failure.");
    Arguments arguments;
    app.add_option("--socket", arguments.socket, "Control socket of the daemon")
        ->envname("PETACQ_SOCKET")
        ->capture_default_str();
    app.add_option("--hosts", arguments.hosts,
                   "start, join, stop, mark, status, watch, ledger, runs, history and acknowledge: of these "
                   "hosts as one, over ssh; h1,h2,...; h1+h2: both hear the same boards")
        ->delimiter(',')
        ->allow_extra_args(false);
    std::function<int()> action;
    add_commands(app, arguments, action);
    const petacq::config::CommandLineStyle style{
        "petctl", {"--count", "--duration", "--last", "--seconds"}, {"--bed-mm"}, values_of};
    if (const auto status = petacq::config::parse_command_line(app, style, argc, argv)) return *status;

    try {
        return action();
    } catch (const RpcError& error) {
        petacq::config::print_error("petctl", petctl::printable(error.what()));
        return petacq::exit_status::has_problems;
    } catch (const ControlUnavailable& error) {
        petacq::config::print_error("petctl", petctl::printable(error.what()));
        return petacq::exit_status::unavailable;
    } catch (const petacq::config::Error& error) {
        petacq::config::print_error("petctl", petctl::printable(error.what()));
        return petacq::exit_status::usage;
    } catch (const petctl::OutputError& error) {
        petacq::config::print_error("petctl", petctl::printable(error.what()));
        return petacq::exit_status::io_failure;
    } catch (const std::exception& error) {
        petacq::config::print_error("petctl", petctl::printable(error.what()));
        return petacq::exit_status::internal_failure;
    }
}
