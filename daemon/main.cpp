// petacqd: reads command line and input files, runs daemon or replay, turns errors into exit statuses.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>

#include "config/base/colour.hpp"
#include "config/base/error.hpp"
#include "config/base/exit_status.hpp"
#include "config/base/ticks.hpp"
#include "config/command_line/command_line.hpp"
#include "daemon/assembly.hpp"
#include "daemon/backend/backend.hpp"
#include "daemon/backend/pipeline_options.hpp"
#include "daemon/buffer_times.hpp"
#include "daemon/live.hpp"
#include "daemon/preflight/gamma_delay.hpp"
#include "daemon/preflight/gaps.hpp"
#include "daemon/preflight/host_check.hpp"
#include "daemon/preflight/partners.hpp"
#include "daemon/replay.hpp"
#include "daemon/run/directory.hpp"
#include "daemon/service/settings.hpp"
#include "daemon/system/journal.hpp"
#include "daemon/system/logging.hpp"
#include "daemon/system/notify.hpp"

namespace {

using namespace petacq;
using namespace petacq::daemon;

struct Arguments {
    std::string file;
    bool check = false;
    bool verbose = false;
    bool json = false;
    std::optional<double> rate;
    ReplayOptions replay;
    std::optional<std::string> from_s, to_s;
};

void add_options(CLI::App& app, Arguments& a) {
    app.add_option("-c,--config,FILE", a.file,
                   "Configuration (JSON; reference/configuration.md of the documentation)");
    app.add_flag(
        "--check", a.check,
        "Check configuration, scanner description, calibration and the GPUs listed, then the host: data "
        "directory, addresses, buffers, memory and disk; say how to put it right, and exit");
    app.add_option(
           "--rate", a.rate,
           "With --check: frames per second for which buffers and disk must do; default: a full slice in "
           "each pipeline.slice_interval_ms, by which the disk is not judged")
        ->needs("--check");
    CLI::Option* const verbose = app.add_flag(
        "--verbose", a.verbose, "With --check: show what is good, too, and how long the buffers last");
    verbose->needs("--check");
    app.add_flag("--json", a.json, "With --check: print JSON")->needs("--check")->excludes(verbose);
    CLI::Option* const replay = app.add_option("--replay", a.replay.files,
                                               "Read these captures (pcap, pcapng; FILE[,FILE...]) instead "
                                               "of receiving, write one run as fast as "
                                               "possible, and exit")
                                    ->delimiter(',')
                                    ->allow_extra_args(false)
                                    ->excludes("--check");
    app.add_option("--run", a.replay.id, "With --replay: id of the run")->needs(replay);
    CLI::Option* const from = app.add_option("--from-ticks", a.replay.start,
                                             "With --replay: start of the run; default: as in the run.json "
                                             "next to the first file")
                                  ->needs(replay);
    CLI::Option* const to =
        app.add_option("--to-ticks", a.replay.stop, "With --replay: end of the run; default: likewise")
            ->needs(replay);
    app.add_option("--from-s", a.from_s, "The same start in seconds of detector time")
        ->type_name("FLOAT")
        ->needs(replay)
        ->excludes(from);
    app.add_option("--to-s", a.to_s, "The same end in seconds of detector time")
        ->type_name("FLOAT")
        ->needs(replay)
        ->excludes(to);
    app.add_flag("--whole", a.replay.whole, "With --replay: take all data, whatever run.json says")
        ->needs(replay);
    app.footer(
        "Exit status: 0 clean, 64 usage, 65 replay with bad data, 70 internal failure, 74 I/O failure, 78 "
        "configuration.");
}

/// Shows an error to the service manager, unless this is only a check.
int failed(const Arguments& arguments, const char* why, int status) {
    if (!arguments.check) notify_status(std::string("failed: ") + why);
    return status;
}

/// The time of an option in seconds, if it was given. Throws config::Error.
void set_ticks(const char* option, const std::optional<std::string>& seconds, double tick_ps,
               std::optional<std::uint64_t>& ticks) {
    if (!seconds) return;
    try {
        ticks = config::ticks_of(*seconds, config::TimeUnit::s, tick_ps, config::Rounding::up);
    } catch (const config::Error& e) {
        throw config::Error(std::string(option) + ": " + e.what());
    }
}

/// Before there is a log. The prefix marks the line as an error in the journal.
void print_error(const char* why) {
    std::fprintf(stderr, "%spetacqd: %s\n", is_journal_stream(STDERR_FILENO) ? "<3>" : "", why);
}

void print_buffer_times(const config::Configuration& configuration, double frames_per_s) {
    const BufferTimes times = buffer_times(configuration, frames_per_s);
    std::printf(
        "at %.3g frames/s nothing is lost while the process stands still for %.3g s "
        "(receive.receive_buffer_bytes, if the kernel grants it), or the disk or the pipeline for %.3g s "
        "(with receive.batch_count)\n",
        frames_per_s, times.process_s, times.disk_s);
}

/// The result of --check as JSON.
void print_document(const std::string& file, const Inputs& inputs, const Findings& findings,
                    double frames_per_s) {
    const BufferTimes times = buffer_times(inputs.configuration, frames_per_s);
    nlohmann::json document = to_json(findings);
    document["configuration"] = file;
    document["scanner"] = {{"name", inputs.scanner.name},
                           {"crystals", inputs.scanner.geometry.crystal_count()}};
    document["calibration_sha256"] = inputs.calibration.sha256;
    document["buffers"] = {{"frames_per_s", frames_per_s},
                           {"process_stands_still_s", times.process_s},
                           {"disk_stands_still_s", times.disk_s}};
    const std::string text = document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
    std::fputs(text.c_str(), stdout);
}

/// The input files are good; is the host? The exit status is that with which the daemon would fail.
int check(const Inputs& inputs, const Arguments& arguments) {
    const config::Configuration& configuration = inputs.configuration;
    const std::optional<std::string> no_devices = check_devices(configuration);
    const FrameRate rate{arguments.rate.value_or(slice_rate(configuration)), arguments.rate.has_value()};
    Findings findings =
        check_host(configuration, receiver_options(configuration, inputs.scanner, inputs.foreign), rate);
    for (const Findings& more : {check_partners(inputs.scanner, coincidence_rules(configuration)),
                                 check_gaps(inputs.scanner, inputs.calibration),
                                 check_gamma_delay(configuration, inputs.scanner.tick_ps)})
        findings.insert(findings.end(), more.begin(), more.end());
    if (no_devices) {
        findings.push_back({Level::warning, "pipeline.devices", "the CPU will compute: " + *no_devices,
                            "take the list out, or make the GPUs usable"});
    }
    if (arguments.json) {
        print_document(arguments.file, inputs, findings, rate.per_s);
    } else {
        std::printf("%s: configuration, scanner %s (%u crystals) and calibration %.12s are good\n",
                    arguments.file.c_str(), inputs.scanner.name.c_str(),
                    inputs.scanner.geometry.crystal_count(), inputs.calibration.sha256.c_str());
        if (arguments.rate || arguments.verbose) print_buffer_times(configuration, rate.per_s);
        const std::string text = report(findings, arguments.verbose, config::colour_wanted(STDOUT_FILENO));
        std::fputs(text.c_str(), stdout);
    }
    if (!any_problem(findings)) return 0;
    print_error("the host is not ready; see the problems above");
    return exit_status::io_failure;
}

int run(const Arguments& arguments, const Inputs& inputs) {
    const Logging logging(inputs.configuration.log_level);
    try {
        return arguments.replay.files.empty() ? run_live(inputs, arguments.file)
                                              : replay(inputs, arguments.replay);
    } catch (const config::Error&) {
        throw;
    } catch (const std::invalid_argument& e) {
        throw config::Error(e.what());
    } catch (const std::exception& e) {
        log_error("{}", e.what());
        return failed(arguments, e.what(), exit_status::io_failure);
    }
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{"petacqd: turns the UDP stream of a PET scanner into coincidence list-mode"};
    Arguments arguments;
    add_options(app, arguments);
    if (const auto status = config::parse_command_line(app, {"petacqd", {"--rate"}, {}}, argc, argv))
        return *status;
    if (arguments.file.empty()) {
        print_error("expected the configuration: petacqd FILE; see petacqd --help");
        return exit_status::usage;
    }
    // By default these signals would kill the daemon in the middle of a run.
    std::signal(SIGUSR1, SIG_IGN);
    std::signal(SIGUSR2, SIG_IGN);
    try {
        if (arguments.replay.id) check_run_id(*arguments.replay.id);
    } catch (const RunDirectoryError& e) {
        print_error((std::string("--run: ") + e.what()).c_str());
        return exit_status::usage;
    }
    try {
        const Inputs inputs = load_inputs(arguments.file);
        check_data_dir(inputs.configuration.data_dir);
        set_ticks("--from-s", arguments.from_s, inputs.scanner.tick_ps, arguments.replay.start);
        set_ticks("--to-s", arguments.to_s, inputs.scanner.tick_ps, arguments.replay.stop);
        if (!arguments.check) return run(arguments, inputs);
        return check(inputs, arguments);
    } catch (const config::Error& e) {
        print_error(e.what());
        return failed(arguments, e.what(), exit_status::bad_configuration);
    } catch (const RunDirectoryError& e) {
        print_error(e.what());
        return failed(arguments, e.what(), exit_status::bad_configuration);
    } catch (const std::exception& e) {
        print_error(e.what());
        return failed(arguments, e.what(), exit_status::internal_failure);
    }
}
