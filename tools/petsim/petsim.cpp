// petsim: a simulated scanner that sends the wire format, with a truth file and faults on demand.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "config/base/error.hpp"
#include "config/base/exit_status.hpp"
#include "config/base/seconds_since.hpp"
#include "daemon/system/file.hpp"
#include "daemon/system/progress_line.hpp"
#include "tools/petsim/command_line.hpp"
#include "tools/petsim/compare.hpp"
#include "tools/petsim/simulation/base/truth.hpp"
#include "tools/petsim/simulation/simulation.hpp"
#include "tools/petsim/transmit.hpp"

namespace {

using namespace petacq;
using Clock = std::chrono::steady_clock;
using config::seconds_since;

sim::Simulation* running = nullptr;  // set before the handlers are installed
std::atomic<bool> interrupted{false};

void on_signal(int /*signal*/) {
    interrupted.store(true);
    if (running != nullptr) running->stop();
}

// Shows a fraction on the terminal until the end of its life.
struct Progress : daemon::ProgressLine {
    explicit Progress(const char* what) : ProgressLine(what, 1000, daemon::ProgressUnit::steps) {}
    void show(double fraction) { ProgressLine::show(static_cast<std::uint64_t>(1000 * fraction)); }
};

struct Timing {
    double simulated_s = 0;
    double sent_s = 0;
    double worst_delay_s = 0;
    std::uint64_t datagrams_sent = 0;
    bool gso = false;
};

/// The scanner as it sends: with the sources on the wire, as far as their addresses are known.
config::Scanner described(config::Scanner scanner, const sim::Command& command) {
    scanner.sources = sim::wire_sources(command.options, scanner);
    if (scanner.sources.front().id || scanner.sources.front().port != 0) return scanner;
    if (command.write_file.empty()) {
        scanner.sources.clear();  // the kernel chooses the ports
        return scanner;
    }
    const std::vector<net::Endpoint> senders = sim::capture_senders(scanner.sources);
    for (std::size_t s = 0; s < senders.size(); ++s) {
        scanner.sources[s].address = "127.0.0.1";
        scanner.sources[s].port = senders[s].port;
    }
    return scanner;
}

/// The true detector, for the truth file and the summary.
nlohmann::json to_json(const sim::Detector& d) {
    return {{"sha256", d.sha256}, {"crosstalk", d.crosstalk}, {"noise_hz", d.noise_hz}};
}

Timing transmit(const sim::Command& command, sim::Simulation& simulation, const config::Scanner& scanner,
                const sim::Simulation::TruthSink& truth) {
    const double tick_ps = scanner.tick_ps;
    Timing timing;
    auto start = Clock::now();
    // Simulates, and passes every datagram to `use`.
    const auto simulate = [&](const char* what, const auto& use) {
        Progress progress(what);
        simulation.run(
            [&](const sim::Datagram& datagram) {
                use(datagram);
                progress.show(simulation.progress());
            },
            truth);
    };
    if (command.dry_run) {
        simulate("simulating", [](const sim::Datagram&) {});
        timing.simulated_s = seconds_since(start);
        return timing;
    }
    if (!command.write_file.empty()) {
        sim::CaptureFile file(command.write_file,
                              sim::capture_senders(sim::wire_sources(command.options, scanner)),
                              sim::capture_destinations(command), tick_ps);
        simulate("writing", [&](const sim::Datagram& datagram) { file.add(datagram); });
        file.flush();
        timing.sent_s = seconds_since(start);
        timing.datagrams_sent = file.datagrams_written();
        return timing;
    }
    sim::Transmitter transmitter(sim::transmit_options(command, tick_ps), interrupted);
    timing.gso = transmitter.gso();
    if (command.prepare) {
        sim::StreamStore stream(transmitter.destinations());
        simulate("preparing", [&](const sim::Datagram& datagram) { stream.add(datagram); });
        timing.simulated_s = seconds_since(start);
        if (!command.quiet) {
            std::printf("prepared           %.1f MiB in %.2f s\n",
                        static_cast<double>(stream.bytes()) / (1U << 20), timing.simulated_s);
            std::fflush(stdout);
        }
        start = Clock::now();
        Progress progress("sending");
        transmitter.play(stream, [&](double fraction) { progress.show(fraction); });
    } else {
        simulate("sending", [&](const sim::Datagram& datagram) { transmitter.add(datagram); });
        transmitter.flush();
    }
    timing.sent_s = seconds_since(start);
    timing.worst_delay_s = transmitter.worst_delay_s();
    timing.datagrams_sent = transmitter.datagrams_sent();
    return timing;
}

void report(const sim::Command& command, const sim::Simulation& simulation, const config::Scanner& scanner,
            const sim::Detector* detector, const Timing& timing) {
    const bool sequenced = command.options.wire.framing == net::Framing::sequenced;
    nlohmann::json summary = sim::to_json(simulation.statistics(), sequenced);
    summary["options"] = sim::to_json(simulation.options());
    summary["scanner"] = config::to_json(described(scanner, command));
    if (detector != nullptr) summary["detector"] = to_json(*detector);
    summary["interrupted"] = interrupted.load();
    summary["sending"] = {{"seconds", timing.sent_s},
                          {"simulating_seconds", timing.simulated_s},
                          {"worst_delay_s", timing.worst_delay_s},
                          {"datagrams_sent", timing.datagrams_sent},
                          {"pace", command.pace},
                          {"gso", timing.gso}};
    if (!command.summary_file.empty()) {
        daemon::File out(command.summary_file, daemon::IfExists::overwrite);
        out.append(summary.dump(2) + '\n');
        out.close();
    }
    if (command.quiet) return;
    std::cout << sim::to_text(simulation.statistics(), sequenced);
    if (command.dry_run) {
        std::printf("simulated in       %.2f s, nothing sent\n", timing.simulated_s);
        return;
    }
    const double frames = static_cast<double>(simulation.statistics().total().frames_sent);
    if (!command.write_file.empty()) {
        std::printf("written in         %.2f s to %s\n", timing.sent_s, command.write_file.c_str());
        return;
    }
    std::printf("sent in            %.2f s, %.4g frames/s, at worst %.3f ms late%s\n", timing.sent_s,
                timing.sent_s > 0 ? frames / timing.sent_s : 0.0, 1e3 * timing.worst_delay_s,
                timing.gso ? ", with GSO" : "");
}

void install_handlers() {
    struct sigaction action {};
    action.sa_handler = on_signal;
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
}

int send_file(const sim::Command& command) {
    const sim::SendCaptureOptions options = sim::send_capture_options(command);
    install_handlers();
    const sim::SentCapture sent = [&] {
        Progress progress("sending");
        return sim::send_capture(options, interrupted, [&](double fraction) { progress.show(fraction); });
    }();
    if (!command.quiet) {
        std::printf("sent %llu datagrams in %.2f s, at worst %.3f ms late\n",
                    static_cast<unsigned long long>(sent.datagrams), sent.seconds, 1e3 * sent.worst_delay_s);
    }
    return exit_status::ok;
}

int make_detector(const sim::MakeDetectorCommand& command) {
    const config::Scanner scanner = config::load_scanner(command.scanner_file);
    sim::Detector detector;
    try {
        detector = sim::make_detector(scanner, command.model);
    } catch (const config::Error& e) {  // the model comes from the command line
        throw std::invalid_argument(e.what());
    }
    sim::save_detector(command.output_file, scanner.geometry, detector);
    if (!command.calibration_file.empty()) {
        config::save_calibration(command.calibration_file, scanner.geometry,
                                 sim::calibration_of(scanner, detector));
    }
    return exit_status::ok;
}

int simulate(sim::Command& command) {
    sim::interpret(command);
    const config::Scanner scanner = config::load_scanner(command.scanner_file);
    std::optional<sim::Detector> detector;
    if (!command.detector_file.empty())
        detector = sim::load_detector(command.detector_file, scanner.geometry);
    const sim::Detector* const true_detector = detector ? &*detector : nullptr;
    const config::Calibration calibration =
        command.calibration_file.empty()
            ? sim::calibration_of(scanner, *detector)
            : config::load_calibration(command.calibration_file, scanner.geometry);
    sim::check(command.options, scanner);
    if (command.rate > 0) {
        command.options.activity_scale =
            sim::scale_for_rate(scanner, calibration, command.options, command.rate, true_detector);
        if (!command.quiet) std::printf("activity scaled by %.6g\n", command.options.activity_scale);
    }
    sim::Simulation simulation(scanner, calibration, command.options, true_detector);
    running = &simulation;
    install_handlers();

    std::unique_ptr<sim::TruthWriter> writer;
    sim::Simulation::TruthSink truth;
    if (!command.truth_file.empty()) {
        nlohmann::json description{{"options", sim::to_json(simulation.options())},
                                   {"scanner", config::to_json(described(scanner, command))},
                                   {"calibration_sha256", calibration.sha256},
                                   {"decays", simulation.expected_decays()}};
        if (detector) description["detector"] = to_json(*detector);
        const bool with_hits =
            detector || command.options.physics.block_pile_up_ns > 0 || sim::knows_photons(command.options);
        writer = std::make_unique<sim::TruthWriter>(command.truth_file, description, with_hits);
        truth = [&](std::span<const sim::TruthRecord> records) { writer->add(records); };
    }
    const Timing timing = transmit(command, simulation, scanner, truth);
    if (writer) writer->close();
    report(command, simulation, scanner, true_detector, timing);
    return exit_status::ok;
}

}  // namespace

int main(int argc, char** argv) {
    sim::CommandLine commands;
    const auto fail = [](const std::exception& e, int status) {
        std::cerr << "petsim: " << e.what() << '\n';
        return status;
    };
    try {
        if (const auto status = sim::parse(argc, argv, commands)) return *status;
        if (commands.make_detector.given) return make_detector(commands.make_detector);
        if (commands.compare.given) {
            const sim::CompareCommand& c = commands.compare;
            return sim::compare_files(c.truth_file, c.run_directory, c.json);
        }
        return commands.simulate.send_file.empty() ? simulate(commands.simulate)
                                                   : send_file(commands.simulate);
    } catch (const std::invalid_argument& e) {
        return fail(e, exit_status::usage);
    } catch (const config::Error& e) {
        return fail(e, exit_status::bad_configuration);
    } catch (const std::runtime_error& e) {
        return fail(e, exit_status::io_failure);
    } catch (const std::exception& e) {
        return fail(e, exit_status::internal_failure);
    }
}
