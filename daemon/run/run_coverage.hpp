// What the run in progress covers, as far as it is known: its writers ask when they close a file.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "daemon/coverage/coverage.hpp"
#include "daemon/listmode/format.hpp"
#include "daemon/listmode/series.hpp"
#include "net/base/mutex.hpp"

namespace petacq::daemon {

/// Safe from any thread.
class RunCoverage {
  public:
    /// What is known before the data: without intervals and anchor.
    explicit RunCoverage(Coverage known) : coverage_(std::move(known)) {}

    /// The first data lie at this tick; absent: the time of day is not known. `taken_from`: the run takes the
    /// singles from this time on.
    void begin(std::uint64_t ticks, std::optional<std::chrono::system_clock::time_point> utc,
               std::uint64_t taken_from);
    /// Detector time starts again: the data are still to come.
    void restart();
    void end(gpu::TickRange covered, gpu::TickRange taken, Loss loss);
    /// Of which times the run takes the singles: it covers those of them that have data. `stop`: absent while
    /// it is in progress.
    struct TakenTimes {
        std::optional<std::uint64_t> start;
        std::optional<std::uint64_t> stop;
    };
    [[nodiscard]] TakenTimes taken() const;

    /// The coverage of all files of this kind. Singles have no rule of coincidences, tags have no rules.
    [[nodiscard]] Coverage of(RecordKind kind) const;
    /// The coverage of one closed file of this kind. If the run continues without the file after a failure,
    /// the coverage ends with the last record of the file.
    [[nodiscard]] Coverage of_part(RecordKind kind, const PartTimes& times) const;

  private:
    mutable net::Mutex mutex_;
    Coverage coverage_ PETACQ_GUARDED_BY(mutex_);
    std::optional<std::uint64_t> begin_ PETACQ_GUARDED_BY(mutex_);
    TakenTimes taken_ PETACQ_GUARDED_BY(mutex_);
};

}  // namespace petacq::daemon
