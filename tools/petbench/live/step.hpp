// One step of a live benchmark: a run of a petacqd at one rate, and whether it passed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/petbench/base/process_figures.hpp"
#include "tools/petbench/live/senders.hpp"
#include "tools/petbench/live/stream.hpp"

namespace petacq::bench {

/// What every step has in common.
struct LiveSite {
    std::filesystem::path program;                  ///< petacqd
    std::filesystem::path directory;                ///< for configuration, log and control socket
    std::filesystem::path data;                     ///< data_dir
    static constexpr const char* tap = "tap.sock";  ///< in `directory`, if the configuration has a tap
};

struct StepOptions {
    double rate = 0;        ///< frames per second
    double seconds = 0;     ///< length of the run
    std::uint32_t tap = 0;  ///< a client of the live tap reads every `tap`-th coincidence; 0: none
};

struct LiveStep {
    double rate = 0;           ///< frames per second asked for
    double detector_rate = 0;  ///< frames per second of detector time
    Sent sent;
    std::vector<std::string> faults;  ///< what was not as it must be; empty: the step passed
    std::string backend;
    std::vector<ThreadGroup> threads;  ///< of petacqd while the senders ran
    std::optional<double> p50_ms;      ///< latency
    std::optional<double> p99_ms;
    std::uint64_t frames = 0;  ///< received
    /// Frames not yet processed when the senders ended. Many of them: the pool hid that the rate is too high.
    std::uint64_t behind = 0;
    // When the senders ended: what the stages of the daemon wait for.
    double pipeline_busy = 0;  ///< share of the time with a slice in the pipeline
    std::uint64_t writer_stalls = 0;
    std::uint64_t writer_high_water = 0;  ///< blocks
    std::uint64_t free_batches_low_water = 0;
    std::uint64_t prompts = 0;
    std::uint64_t delayeds = 0;
    std::uint64_t listmode_bytes = 0;
    std::uint64_t run_bytes = 0;  ///< of all files of the run
    std::uint64_t memory_bytes = 0;
    std::uint64_t tap_sent = 0;  ///< coincidences
    std::uint64_t tap_dropped = 0;

    [[nodiscard]] bool passed() const { return faults.empty(); }
    [[nodiscard]] double reached() const { return static_cast<double>(sent.frames) / sent.seconds; }
};

/// Starts a petacqd, makes a run, and removes what it has written.
LiveStep run_step(const LiveSite& site, const nlohmann::json& configuration, LiveStream& stream,
                  const StepOptions& options);

}  // namespace petacq::bench
