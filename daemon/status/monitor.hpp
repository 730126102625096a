// Reads all counters of the daemon, once for all who show them: the status document, health, metrics and the
// live page are views of the same reading.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "daemon/peer/judge.hpp"
#include "daemon/space/disk_space.hpp"
#include "daemon/status/lasting_reasons.hpp"
#include "daemon/status/reading.hpp"
#include "daemon/status/stages.hpp"
#include "daemon/system/progress.hpp"
#include "net/batch.hpp"
#include "net/receive/receiver.hpp"

namespace petacq::daemon {

/// Belongs to one thread. Everything passed to the constructor outlives it.
class Monitor {
  public:
    /// Time between two calls of observe().
    static constexpr std::chrono::seconds interval{1};

    /// Takes the first reading, which looks at the disk.
    Monitor(const RunSetting& setting, const net::BatchPool& pool, std::uint64_t pipeline_bytes,
            std::vector<const net::Receiver*> receivers, const Acquisition& acquisition, const RunState& run);

    /// The latest look at the disk; nothing: it did not answer. The monitor touches no file itself, since a
    /// disk may take long.
    void set_disk_space(std::optional<DiskSpace> space) { space_ = space; }
    /// Takes an answer of the other host of a pair. REQUIRES: `peer.url` is configured.
    void hear_peer(PeerAnswer answer);
    /// Once per interval: reads everything and updates health.
    void observe(const RunState& run);
    /// After a change of the run, and before a run goes away: reads the counters, not the stages.
    void read(const RunState& run);
    /// Updates health from the latest reading and logs each reason that comes or goes. Whether any did.
    bool assess(const RunState& run);

    [[nodiscard]] const Reading& reading() const { return now_; }
    /// Any thread.
    [[nodiscard]] const Stages& stages() const { return stages_; }
    /// The status document of the latest reading.
    [[nodiscard]] nlohmann::json status(const RunState& run) const;

  private:
    [[nodiscard]] Observation observation(const RunState& run) const;
    void read_slow();
    void judge_peer(const RunState& run);
    void note_arrival(const AcquisitionSnapshot* earlier, bool held_up);

    const RunSetting& setting_;
    const net::BatchPool& pool_;
    const std::uint64_t pipeline_bytes_;
    const std::vector<const net::Receiver*> receivers_;
    const Acquisition& acquisition_;
    const std::string scanner_sha256_;  ///< of the description without its sources
    const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();

    Reading now_;
    Reading latest_observed_;
    Reading before_;  ///< observed before that: long enough ago for a rate
    std::shared_ptr<const AcquisitionSnapshot> daemon_start_;
    Stages stages_;
    ProgressWatch progress_;
    std::optional<DiskSpace> space_;
    WriteRate write_rate_;
    std::optional<PeerJudge> peer_;
    LastingReasons health_;
};

}  // namespace petacq::daemon
