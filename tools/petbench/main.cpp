// petbench: the benchmarks. This file reads the command line; suites.hpp lists the suites.

#include <CLI/CLI.hpp>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <system_error>

#include "config/base/error.hpp"
#include "config/base/exit_status.hpp"
#include "config/command_line/command_line.hpp"
#include "config/configuration.hpp"
#include "net/wire.hpp"
#include "tools/petbench/base/frames.hpp"
#include "tools/petbench/base/suites.hpp"

namespace petacq::bench {
namespace {

/// An option whose help shows its default.
template <class T>
CLI::Option* option(CLI::App& app, const char* name, T& value, const char* help) {
    return app.add_option(name, value, help)->capture_default_str();
}

CLI::Option* add_directory(CLI::App& app, std::string& directory,
                           const char* help = "Directory to write to") {
    return option(app, "--dir", directory, help)->check(CLI::ExistingDirectory);
}

void add_repetitions(CLI::App& app, const char* name, int& value, const char* help) {
    option(app, name, value, help)->check(CLI::Range(1, 1000));
}

void add_repetitions(CLI::App& app, unsigned& value) {
    option(app, "--repetitions", value, "Measurements of each kind")->check(CLI::Range(1U, 1000U));
}

void add_options(CLI::App& app, ReceiveSuite& s) {
    option(app, "--payload", s.payloads, "Datagram sizes in bytes, cut to whole frames")
        ->check(CLI::Range(std::size_t{32}, net::max_datagram_bytes));
    option(app, "--seconds", s.seconds, "Length of one measurement");
    option(app, "--pairs", s.pairs, "Pairs of a sender and a receiver")->check(CLI::Range(1U, 64U));
    add_repetitions(app, s.repetitions);
    app.add_flag("--gso,!--no-gso", s.gso, "The sender hands runs of datagrams to the kernel as one");
    app.add_flag("--gro,!--no-gro", s.gro, "The kernel hands runs of datagrams to the receiver as one");
    option(app, "--batch-bytes", s.batch_bytes, "Size of a batch of the receiver")
        ->check(CLI::Range(std::size_t{131072}, std::size_t{1} << 30));
    app.add_flag(
        "--veth", s.veth,
        "Send over virtual Ethernet devices between two network namespaces, not loopback; needs root");
}

void add_options(CLI::App& app, TranslateSuite& s) {
    option(app, "--layout", s.layout, "Layout of the frames")->check(CLI::ExistingFile);
    option(app, "--tick-ps", s.tick_ps, "Picoseconds of a tick");
    option(app, "--payload", s.payloads, "Datagram sizes in bytes, cut to whole frames")
        ->check(CLI::Range(std::size_t{32}, net::max_datagram_bytes));
    option(app, "--seconds", s.seconds, "Length of one measurement");
    add_repetitions(app, s.repetitions);
}

void add_options(CLI::App& app, AcquisitionSuite& s) {
    option(app, "--sources", s.sources, "Boards")->check(CLI::Range(1, 4096));
    option(app, "--sockets", s.sockets, "Receivers")->check(CLI::Range(1, 64));
    option(app, "--per-read", s.datagrams_per_read, "Datagrams that a receiver reads at a time")
        ->check(CLI::Range(1, 44));
    option(app, "--slice-frames", s.slice_frames, "Frames in a slice")->check(CLI::Range(1000, 1 << 26));
    option(app, "--millions", s.millions, "Datagrams")->check(CLI::Range(0.1, 10'000.0));
    add_repetitions(app, "--repetitions", s.repetitions, "Measurements");
}

/// Checks that involve several options.
void check(const PipelineSuite& s) {
    if (s.backend != "cuda") {
        if (!s.devices.empty()) throw CLI::ValidationError("--devices", "expected --backend cuda");
        return;
    }
    if (s.processes) throw CLI::ValidationError("--processes", "expected --backend cpu");
    if (s.threads.size() > 1)
        throw CLI::ValidationError("--threads", "expected one number with --backend cuda");
    const std::size_t datagram = StreamOptions{}.frames_per_datagram;
    if (s.slice_frames > 0 && s.slice_frames < datagram) {
        throw CLI::ValidationError(
            "--slice-frames",
            "expected at least a datagram of " + std::to_string(datagram) + " frames with --backend cuda");
    }
}

void add_options(CLI::App& app, PipelineSuite& s) {
    app.add_option("--scanner", s.scanner, "Scanner description (JSON)")
        ->required()
        ->check(CLI::ExistingFile);
    option(app, "--backend", s.backend, "cpu or cuda")->check(CLI::IsMember({"cpu", "cuda"}));
    app.add_option("--frames", s.frames,
                   "Frames in the stream; default 8 Mi (cpu), 1 Gi (cuda; 17 GB of pinned memory)")
        ->check(CLI::Range(1000, 1 << 30));
    app.add_option("--slice-frames", s.slice_frames,
                   "Frames in a slice; default 262144 (cpu), 1, 4 and 16 Mi one after the other (cuda)")
        ->check(CLI::Range(1, 1 << 26));
    option(app, "--receivers", s.receivers,
           "Receivers whose reads alternate in a slice, each with memory of its own (cuda)")
        ->check(CLI::Range(1, 64));
    app.add_option("--devices", s.devices,
                   "Numbers of the GPUs that share the work, such as 0,1; default the first (cuda)")
        ->delimiter(',')
        ->expected(1, 16)
        ->check(CLI::Range(0, 1023));
    option(app, "--rate", s.rate, "Singles per second of detector time");
    option(app, "--window-ns", s.window_ns, "Coincidence window");
    option(app, "--delay-ns", s.delay_ns, "Delay of the window for randoms; 0: none");
    option(app, "--delayeds", s.delayeds, "How delayeds are found")
        ->check(CLI::IsMember(config::words<config::DelayedRule>.names));
    option(app, "--policy", s.policy, "Multiples policy: how groups of more than two singles are handled")
        ->check(CLI::IsMember(config::words<config::MultiplesPolicy>.names));
    option(app, "--mode", s.mode, "Window mode")
        ->check(CLI::IsMember(config::words<config::WindowMode>.names));
    option(app, "--bins", s.bins, "Energy bins of the calibration")->check(CLI::Range(1, 6554));
    option(app, "--nonlinearity", s.nonlinearity, "Makes factors differ from bin to bin");
    app.add_option("--threads", s.threads,
                   "Thread counts to try; default 1 to the number of cores, doubling. With cuda one number: "
                   "threads that copy results, at most 8; default half the cores")
        ->check(CLI::Range(1, 4096));
    app.add_flag("--singles", s.singles, "Only order the singles and return them: no coincidences");
    app.add_flag("--spectra", s.spectra, "Compare with passes that count spectra, alternating");
    option(
        app, "--gammas", s.gammas,
        "Fraction of the frames that are gammas of 1157 keV, at the time of the frame before; compares with "
        "passes that find their triples, alternating")
        ->check(CLI::Range(0.0, 0.9));
    option(app, "--gamma-window-ns", s.gamma_window_ns, "How long before and after a pair its gammas come")
        ->check(CLI::Range(0.0, 1e5));
    app.add_flag("--processes", s.processes,
                 "Compare each number of threads with as many processes of one thread, alternating (cpu)");
    add_repetitions(app, "--repeat", s.repeat, "Passes of which the median is taken");
}

void add_options(CLI::App& app, WriterSuite& s) {
    add_directory(app, s.directory);
    option(app, "--gigabytes", s.gigabytes, "Bytes in each round, in all files together")
        ->check(CLI::Range(0.01, 10'000.0));
    option(app, "--files", s.files,
           "Files written side by side, each by a thread; several numbers to compare")
        ->check(CLI::Range(1, 16));
    app.add_flag("--direct", s.direct, "Also plain writes with O_DIRECT");
    option(app, "--block-bytes", s.block_bytes, "Block size")
        ->check(CLI::Range(4096, 1 << 28))
        ->check([](const std::string& text) {
            std::uint32_t value = 0;
            const bool good = CLI::detail::lexical_cast(text, value) && value % 64 == 0;
            return good ? std::string() : "expected a multiple of 64, found " + text;
        });
    option(app, "--queue-blocks", s.queue_blocks, "Blocks that may wait")->check(CLI::Range(2, 65536));
    add_repetitions(app, "--rounds", s.rounds, "Rounds");
}

void add_options(CLI::App& app, ExportSuite& s) {
    add_directory(app, s.directory);
    app.add_option("--scanner", s.scanner, "Scanner description")->required();
    option(app, "--millions", s.millions, "Coincidences")->check(CLI::Range(0.02, 100'000.0));
    add_repetitions(app, "--rounds", s.rounds, "Rounds");
}

void add_options(CLI::App& app, ImageSuite& s) {
    app.add_option("--scanner", s.scanner, "Scanner description")->required();
    option(app, "--millions", s.millions, "Prompts")->check(CLI::Range(0.001, 1000.0));
    option(app, "--backend", s.backends, "cpu, cuda, or both: then their images are compared")
        ->check(CLI::IsMember({"cpu", "cuda"}));
    option(app, "--threads", s.threads, "CPU threads; 0: one per core")->check(CLI::Range(0, 1024));
    option(app, "--iterations", s.iterations, "Passes over all subsets")->check(CLI::Range(1, 1000));
    option(app, "--subsets", s.subsets, "Subsets of the lines")->check(CLI::Range(1, 1000));
    option(app, "--tof-fwhm-ps", s.tof_fwhm_ps, "Resolution of the time of flight; 0: without")
        ->check(CLI::Range(0.0, 1e6));
    option(app, "--psf-mm", s.psf_mm, "FWHM of the blur in the model; 0: none")
        ->check(CLI::Range(0.0, 100.0));
    option(app, "--max-memory-gb", s.max_memory_gb, "Host memory that may be used")
        ->check(CLI::Range(0.001, 1e6));
    add_repetitions(app, "--rounds", s.rounds, "Rounds that are counted");
}

void add_options(CLI::App& app, ReplaySuite& s) {
    app.add_option("--config", s.configuration, "Configuration of petacqd")
        ->required()
        ->check(CLI::ExistingFile);
    app.add_option("--capture", s.capture, "Capture (pcap) of the scanner in it, sequenced framing")
        ->required()
        ->check(CLI::ExistingFile);
    add_directory(app, s.directory, "Directory to write runs to");
    add_repetitions(app, "--rounds", s.rounds, "Rounds");
}

void add_options(CLI::App& app, StatusLoadSuite& s) {
    option(app, "--scanner", s.scanner, "Scanner description");
    option(app, "--subscribers", s.subscribers, "Subscribers on the control socket; one never reads")
        ->check(CLI::Range(1U, 4000U));
    option(app, "--http-clients", s.http_clients, "Clients that ask for /metrics ten times a second")
        ->check(CLI::Range(0U, 60U));
    option(app, "--interval", s.interval_s, "Interval of the subscriptions, seconds")
        ->check(CLI::Range(0.1, 3600.0));
    option(app, "--rate", s.rate, "Datagrams of 1472 bytes per second")->check(CLI::Range(1000.0, 1e7));
    option(app, "--seconds", s.seconds, "Length of one measurement");
    add_repetitions(app, s.repetitions);
}

/// Checks that involve several options.
void check(const LiveSuite& s) {
    if (s.from > s.to) throw CLI::ValidationError("--to", "expected at least the rate of --from");
    if (s.senders > 0 && s.senders < s.sockets)
        throw CLI::ValidationError("--senders", "expected at least one for each socket");
    if (!s.overload.empty() && s.rate <= 0)
        throw CLI::ValidationError("--overload", "expected --rate, which petacqd can take");
    if (!s.overload.empty() && s.seconds < 2)
        throw CLI::ValidationError("--seconds", "expected at least 2 with --overload");
}

void add_options(CLI::App& app, LiveSuite& s) {
    option(app, "--scanner", s.scanner, "Scanner description");
    app.add_option("--calibration", s.calibration, "Calibration; default one made for the scanner")
        ->check(CLI::ExistingFile);
    app.add_option("--capture", s.capture,
                   "Capture (pcap) whose frames are sent, sequenced framing; default simulated frames")
        ->check(CLI::ExistingFile);
    add_directory(app, s.directory, "Directory to write runs to");
    app.add_option("--petacqd", s.petacqd, "petacqd; default the one in the directory of petbench")
        ->check(CLI::ExistingFile);
    app.add_option("--patch", s.patch, "JSON merge patch of the configuration of petacqd");
    option(app, "--backend", s.backend, "cpu, cuda or auto")->check(CLI::IsMember({"cpu", "cuda", "auto"}));
    option(app, "--threads", s.threads, "Threads of the CPU back-end; 0: the default of petacqd")
        ->check(CLI::Range(0, 4096));
    option(app, "--sockets", s.sockets, "Sockets of petacqd, each with a port")->check(CLI::Range(1U, 64U));
    app.add_option("--senders", s.senders, "Threads that send; default one for each socket")
        ->check(CLI::Range(1U, 64U));
    option(app, "--payload", s.payload, "Datagram size in bytes, cut to whole frames")
        ->check(CLI::Range(std::size_t{32}, net::max_datagram_bytes));
    option(app, "--frames", s.frames, "Simulated frames in memory, sent over and over")
        ->check(CLI::Range(1000, 1 << 28));
    app.add_option("--detector-rate", s.detector_rate,
                   "Simulated frames per second of detector time; default as many as are sent in a second");
    option(app, "--efficiency", s.efficiency,
           "Chance that a crystal detects a simulated photon; decides the share of prompts")
        ->check(CLI::Range(0.001, 1.0));
    option(app, "--window-ns", s.window_ns, "Coincidence window");
    option(app, "--delay-ns", s.delay_ns, "Delay of the window for randoms; 0: none");
    app.add_flag("--raw", s.raw, "Also write a raw capture");
    option(app, "--tap", s.tap, "A client of the live tap reads every N-th coincidence; 0: none");
    option(app, "--from", s.from, "Lowest rate, frames per second");
    option(app, "--to", s.to, "Highest rate, frames per second");
    option(app, "--steps", s.steps, "Runs at most")->check(CLI::Range(1U, 100U));
    app.add_option("--rate", s.rate, "One run at this rate, frames per second, without search");
    option(app, "--seconds", s.seconds, "Length of a run");
    app.add_option(
        "--overload", s.overload,
        "Runs in which so many times --rate are sent for a while: what the daemon keeps, and whether "
        "it only drops");
    option(app, "--overload-seconds", s.overload_seconds,
           "Length of the overload; --seconds at --rate lie before and after it");
}

void add_options(CLI::App& app, SortSuite& s) {
    option(app, "--from", s.least, "Singles in the shortest sort")->check(CLI::Range(1, 1 << 30));
    option(app, "--to", s.most, "Singles in the longest sort; lengths grow by 4")
        ->check(CLI::Range(1, 1 << 30));
    option(app, "--bits", s.bits, "Key bits to sort by")->check(CLI::Range(1, 64));
    add_repetitions(app, "--repeat", s.repeat, "Sorts of which the median is taken");
}

/// A subcommand that runs the suite.
template <class Suite>
void add(CLI::App& app, const char* name, const char* help) {
    const auto suite = std::make_shared<Suite>();
    CLI::App* const command = app.add_subcommand(name, help);
    add_options(*command, *suite);
    command->callback([suite] {
        if constexpr (std::is_same_v<Suite, PipelineSuite> || std::is_same_v<Suite, LiveSuite>) check(*suite);
        run(*suite);
    });
}

void add_suites(CLI::App& app) {
    add<ReceiveSuite>(app, "receive", "The UDP receiver against a bare recvmmsg loop");
    add<TranslateSuite>(app, "translate", "The translation of foreign frames");
    add<PipelineSuite>(app, "pipeline", "Conversion, order, coincidences and the whole");
    add<AcquisitionSuite>(app, "acquisition", "The acquisition thread alone, without receivers and pipeline");
    add<WriterSuite>(app, "writer", "List-mode writer against plain writes by as many threads");
    add<ExportSuite>(app, "export", "Exports of petlm against a plain copy");
    add<ImageSuite>(app, "image", "The quick-look image of petlm");
    add<ReplaySuite>(app, "replay", "Replay of a capture against the pipeline in memory");
    add<StatusLoadSuite>(app, "status-load",
                         "What status subscribers cost the receive path of a real petacqd");
    add<LiveSuite>(app, "live", "The highest rate without loss from UDP to list-mode, with a real petacqd");
    add<SortSuite>(app, "sort", "The sort engines of the CUDA back-end; needs a GPU");
}

int fail(const std::exception& error, int status) {
    std::fprintf(stderr, "petbench: %s\n", error.what());
    return status;
}

}  // namespace
}  // namespace petacq::bench

int main(int argc, char** argv) {
    using petacq::bench::fail;
    CLI::App app{"petbench: measures the parts of petacqd on this machine"};
    app.require_subcommand(1);
    petacq::bench::add_suites(app);
    try {
        const petacq::config::CommandLineStyle style{"petbench",
                                                     {"--seconds", "--tick-ps", "--rate", "--detector-rate",
                                                      "--from", "--to", "--overload", "--overload-seconds"},
                                                     {}};
        // Runs the suite.
        if (const auto status = petacq::config::parse_command_line(app, style, argc, argv)) return *status;
        if (std::fflush(stdout) != 0) throw petacq::config::IoError("standard output: cannot be written");
        return 0;
    } catch (const petacq::bench::ExpectationFailed& error) {
        return fail(error, EXIT_FAILURE);
    } catch (const petacq::config::IoError& error) {
        return fail(error, petacq::exit_status::io_failure);
    } catch (const petacq::config::Error& error) {
        return fail(error, petacq::exit_status::bad_configuration);
    } catch (const std::system_error& error) {
        return fail(error, petacq::exit_status::io_failure);
    } catch (const std::exception& error) {
        return fail(error, petacq::exit_status::internal_failure);
    }
}
