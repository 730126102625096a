// petbench live: the highest rate at which petacqd takes a stream from UDP to list-mode without loss.
//
// Everything is real but the scanner: sockets on loopback, petacqd as a process, list-mode in a directory.
// Each step is a run at one rate, judged by its ledger. Bisection finds the highest rate that passes.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "config/make_calibration.hpp"
#include "config/scanner/scanner.hpp"
#include "net/wire.hpp"
#include "tools/petbench/base/daemon_process.hpp"
#include "tools/petbench/base/scratch_directory.hpp"
#include "tools/petbench/base/suites.hpp"
#include "tools/petbench/live/frames.hpp"
#include "tools/petbench/live/overload.hpp"
#include "tools/petbench/live/step.hpp"
#include "tools/petbench/receive/pairs.hpp"

namespace petacq::bench {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

json configuration(const LiveSuite& suite, const config::Scanner& scanner, const fs::path& calibration,
                   const fs::path& data) {
    const auto ticks = [&](double ns) { return config::ticks_of(ns * 1e-9, scanner); };
    json sockets = json::array();
    for (unsigned i = 0; i < suite.sockets; ++i)
        sockets.push_back({{"address", "127.0.0.1"}, {"port", 0}});
    json document = {{"scanner", fs::absolute(suite.scanner).string()},
                     {"calibration", fs::absolute(calibration).string()},
                     {"data_dir", fs::absolute(data).string()},
                     {"receive", {{"sockets", sockets}}},
                     {"coincidence", {{"window_ticks", ticks(suite.window_ns)}}},
                     {"pipeline", {{"backend", suite.backend}, {"threads", suite.threads}}},
                     {"listmode", {{"write_raw", suite.raw}}},
                     {"http", {{"listen", ""}}}};
    if (suite.delay_ns > 0) document["coincidence"]["delay_ticks"] = ticks(suite.delay_ns);
    if (suite.tap > 0) document["tap"] = {{"socket", LiveSite::tap}};
    if (scanner.sources.empty()) document["sources"] = {{"accept_any", true}};
    if (!suite.patch.empty()) document.merge_patch(json::parse(suite.patch));
    return document;
}

/// How long a board gathers datagrams that it sends together.
constexpr double burst_seconds = 100e-6;

/// The streams of a suite: one for every rate if the clocks of the detector run as that of the host, else one
/// for all.
class Streams {
  public:
    Streams(const LiveSuite& suite, const config::Scanner& scanner, const config::Calibration& calibration)
        : suite_(suite), scanner_(scanner), calibration_(calibration) {
        if (!suite.capture.empty()) {
            only_ = make(captured_frames(suite.capture, scanner_.frame_version));
        } else if (suite.detector_rate > 0) {
            only_ = make(simulated(suite.detector_rate));
        }
    }
    [[nodiscard]] std::shared_ptr<LiveStream> at(double rate) const {
        if (only_) return only_;
        // The stream leaves out frames that do not fill a datagram.
        const std::shared_ptr<LiveStream> first = make(simulated(rate));
        return make(simulated(rate * rate / detector_rate(*first)));
    }
    /// Frames per second of detector time.
    [[nodiscard]] double detector_rate(const LiveStream& stream) const {
        return static_cast<double>(stream.frames()) /
               (static_cast<double>(stream.period()) * scanner_.tick_ps * 1e-12);
    }
    [[nodiscard]] unsigned senders() const { return suite_.senders > 0 ? suite_.senders : suite_.sockets; }
    /// Of whole frames.
    [[nodiscard]] std::size_t payload() const { return suite_.payload / net::frame_bytes * net::frame_bytes; }

  private:
    [[nodiscard]] std::vector<SourceFrames> simulated(double detector_rate) const {
        return simulated_frames(scanner_, calibration_, {suite_.frames, detector_rate, suite_.efficiency});
    }
    [[nodiscard]] std::shared_ptr<LiveStream> make(std::vector<SourceFrames> frames) const {
        return std::make_shared<LiveStream>(scanner_.frame_version, std::move(frames), payload(), senders(),
                                            config::ticks_of(burst_seconds, scanner_));
    }

    const LiveSuite& suite_;
    const config::Scanner& scanner_;
    const config::Calibration& calibration_;
    std::shared_ptr<LiveStream> only_;
};

class RateSearch {
  public:
    RateSearch(const LiveSuite& suite, const LiveSite& site, const json& configuration,
               const Streams& streams)
        : suite_(suite), site_(site), configuration_(configuration), streams_(streams) {}

    /// The step at the highest rate that passed; the last one if none did.
    LiveStep run() {
        if (suite_.rate > 0) {
            attempt(suite_.rate);
        } else if (attempt(suite_.from) && suite_.steps > 1 && !attempt(suite_.to)) {
            double low = suite_.from;
            double high = suite_.to;
            while (steps_ < suite_.steps) {
                const double middle = (low + high) / 2;
                (attempt(middle) ? low : high) = middle;
            }
        }
        return best_;
    }

  private:
    bool attempt(double rate) {
        const std::shared_ptr<LiveStream> stream = streams_.at(rate);
        LiveStep step = run_step(site_, configuration_, *stream, {rate, suite_.seconds, suite_.tap});
        step.detector_rate = streams_.detector_rate(*stream);
        const bool passed = step.passed();
        std::string verdict = passed ? "passed" : "failed: ";
        for (std::size_t i = 0; i < step.faults.size(); ++i)
            verdict += (i == 0 ? "" : ", ") + step.faults[i];
        std::printf(
            "  step %2u %9.2f M frames/s (%.2f M in a second of detector time), at the end %.2f s behind   "
            "%s\n",
            ++steps_, rate * 1e-6, step.detector_rate * 1e-6, static_cast<double>(step.behind) / rate,
            verdict.c_str());
        std::fflush(stdout);
        if (passed || !best_.passed() || steps_ == 1) best_ = std::move(step);
        return passed;
    }

    const LiveSuite& suite_;
    const LiveSite& site_;
    const json& configuration_;
    const Streams& streams_;
    unsigned steps_ = 0;
    LiveStep best_;
};

void print_latency(const char* name, const std::optional<double>& ms) {
    if (ms) {
        std::printf("   %s %.1f ms", name, *ms);
    } else {
        std::printf("   %s unknown", name);
    }
}

void print_threads(const LiveStep& step) {
    std::printf("  CPU of petacqd's threads, shares of a core:\n");
    for (const ThreadGroup& group : step.threads) {
        double sum = 0;
        for (const double share : group.shares)
            sum += share;
        std::printf("    %-16s %6.2f  =", group.name.c_str(), sum);
        for (const double share : group.shares)
            std::printf(" %.2f", share);
        std::printf("\n");
    }
    std::printf("    %-16s        ", "senders");
    for (const double seconds : step.sent.cpu_seconds)
        std::printf(" %.2f", seconds / step.sent.seconds);
    std::printf("   (of petbench; at most %.2f ms behind)\n", step.sent.worst_delay_s * 1e3);
    if (!step.threads.empty()) {
        const ThreadGroup& busiest = step.threads.front();
        std::printf("  busiest stage: %s, %.2f of a core\n", busiest.name.c_str(), busiest.shares.front());
        std::printf(
            "  a slice in the pipeline %.2f of the time; %llu waits for the disk, at most %llu blocks "
            "waiting; "
            "at least %llu batches free\n",
            step.pipeline_busy, static_cast<unsigned long long>(step.writer_stalls),
            static_cast<unsigned long long>(step.writer_high_water),
            static_cast<unsigned long long>(step.free_batches_low_water));
    }
}

void print(const LiveStep& step) {
    const double seconds = step.sent.seconds;
    const auto frames = static_cast<double>(std::max<std::uint64_t>(1, step.frames));
    std::printf("%s: %.2f M frames/s (%.2f M in a second of detector time), %.1f M frames in %.2f s (%s)\n",
                step.passed() ? "highest rate without loss" : "no rate passed; the last one",
                step.reached() * 1e-6, step.detector_rate * 1e-6,
                static_cast<double>(step.sent.frames) * 1e-6, seconds, step.backend.c_str());
    print_threads(step);
    std::printf("  latency from arrival to disk:");
    print_latency("p50", step.p50_ms);
    print_latency("p99", step.p99_ms);
    std::printf("\n  UDP %.3f GB/s up, list-mode %.3f GB/s down, all files of the run %.3f GB/s\n",
                static_cast<double>(step.sent.bytes) * 1e-9 / seconds,
                static_cast<double>(step.listmode_bytes) * 1e-9 / seconds,
                static_cast<double>(step.run_bytes) * 1e-9 / seconds);
    if (step.tap_sent + step.tap_dropped > 0) {
        std::printf("  live tap: %.2f M coincidences sent, %.2f M dropped\n",
                    static_cast<double>(step.tap_sent) * 1e-6, static_cast<double>(step.tap_dropped) * 1e-6);
    }
    std::printf("  prompts %.1f %% of the frames, delayeds %.1f %%; memory of petacqd at most %.2f GB\n",
                100 * static_cast<double>(step.prompts) / frames,
                100 * static_cast<double>(step.delayeds) / frames,
                static_cast<double>(step.memory_bytes) * 1e-9);
}

/// What the machine takes from as many sockets when nothing is done with it.
void print_bare_loop(const LiveSuite& suite, std::size_t payload) {
    ReceiveSuite bare;
    bare.pairs = suite.sockets;
    ReceiveFigures figures;
    measure<BareLoop>(bare, payload, nullptr, figures);
    const std::size_t whole = (payload - net::header_bytes) / net::frame_bytes;
    const auto frames = static_cast<double>(whole);
    std::printf("  bare receive loop, %u pairs of threads: %.1f M frames/s, %.1f Gb/s, %.1f %% lost\n",
                bare.pairs, figures.rate.front() * frames * 1e-6,
                figures.rate.front() * static_cast<double>(payload) * 8e-9, 100 * figures.loss.front());
}

void overloads(const LiveSuite& suite, const LiveSite& site, const json& configuration,
               const Streams& streams) {
    const std::shared_ptr<LiveStream> ordinary = streams.at(suite.rate);
    std::size_t failed = 0;
    for (const double factor : suite.overload) {
        const OverloadOptions options{suite.rate, suite.seconds, factor, suite.overload_seconds};
        const std::shared_ptr<LiveStream> more = streams.at(suite.rate * factor);
        const OverloadResult result = run_overload(site, configuration, *ordinary, *more, options);
        print(options, result);
        if (!result.faults.empty()) ++failed;
    }
    if (failed > 0) {
        throw ExpectationFailed(std::to_string(failed) + " of " + std::to_string(suite.overload.size()) +
                                " overloads did more than drop datagrams");
    }
}

}  // namespace

void run(const LiveSuite& suite) {
    const config::Scanner scanner = config::load_scanner(suite.scanner);
    const ScratchDirectory own(fs::temp_directory_path(), "live");
    const ScratchDirectory data(suite.directory, "live-data");
    fs::path calibration_file = suite.calibration;
    if (calibration_file.empty()) {
        calibration_file = own.path() / "calibration.h5";
        config::save_calibration(calibration_file, scanner.geometry, config::make_calibration(scanner, {}));
    }
    const LiveSite site{suite.petacqd.empty() ? petacqd_beside() : fs::path(suite.petacqd), own.path(),
                        data.path()};
    const config::Calibration calibration = config::load_calibration(calibration_file, scanner.geometry);
    const Streams streams(suite, scanner, calibration);
    std::printf("live: %u sockets, %u senders, datagrams of %zu bytes; steps of %g s on %u cores\n",
                suite.sockets, streams.senders(), streams.payload(), suite.seconds,
                std::thread::hardware_concurrency());
    std::fflush(stdout);
    const json settings = configuration(suite, scanner, calibration_file, data.path());
    if (!suite.overload.empty()) return overloads(suite, site, settings, streams);
    print(RateSearch(suite, site, settings, streams).run());
    print_bare_loop(suite, streams.payload());
}

}  // namespace petacq::bench
