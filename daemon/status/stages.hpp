// The progress of every stage, for the status document and for the watchdog, each in a thread of its own.
#pragma once

#include <vector>

#include "daemon/acquisition/acquisition.hpp"
#include "daemon/run/run.hpp"
#include "daemon/system/progress.hpp"
#include "net/base/mutex.hpp"
#include "net/receive/receiver.hpp"

namespace petacq::daemon {

/// Thread-safe. Everything passed to it outlives it, but for the run.
class Stages {
  public:
    Stages(std::vector<const net::Receiver*> receivers, const Acquisition& acquisition)
        : receivers_(std::move(receivers)), acquisition_(acquisition) {}

    /// The run whose files are open, or else the one whose files are being closed; nullptr: none. Call it
    /// before a run goes away.
    void show(const Run* open, const Run* closing);
    /// Receivers, acquisition, pipeline, second sums, writers, the end of a run. Waits for no stage.
    [[nodiscard]] std::vector<StageProgress> read() const;

  private:
    const std::vector<const net::Receiver*> receivers_;
    const Acquisition& acquisition_;
    mutable net::Mutex mutex_;
    const Run* open_ PETACQ_GUARDED_BY(mutex_) = nullptr;
    const Run* closing_ PETACQ_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace petacq::daemon
