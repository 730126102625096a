// Where the acquisition thread gets its batches and where it returns them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "net/batch.hpp"

namespace petacq::daemon {

class Capture;

/// Filled batches come from the receivers. Used batches return to the pool, through the raw capture of a run
/// if it keeps one. No thread-safety.
class BatchExchange {
  public:
    /// Both outlive this object.
    BatchExchange(net::BatchPool& pool, net::BatchQueue& filled) : pool_(pool), filled_(filled) {}

    /// The next filled batch; nullptr when none arrives within `timeout`.
    net::Batch* wait(std::chrono::microseconds timeout);
    /// Returns the batches and empties the list.
    void give_back(std::vector<net::Batch*>& batches);

    // The batch that is being read. It may belong to a capture up to the present datagram only.
    void reading(const net::Batch& batch, std::size_t datagrams) {
        reading_ = &batch;
        read_ = datagrams;
    }
    void read_completely() { reading_ = nullptr; }

    /// Batches returned from now on go through `capture` (nullptr: none), which outlives its use here.
    void start_capture(Capture* capture) { capture_ = capture; }
    /// Gives the capture the part of the present batch that has been read.
    void stop_capture();

    /// Batches of the pool, free or not.
    [[nodiscard]] std::size_t count() const { return pool_.count(); }
    /// The fewest free batches, as seen by wait() and now, since the low water was last restarted.
    [[nodiscard]] std::size_t free_low_water() const { return std::min(free_low_water_, pool_.free_count()); }
    void restart_low_water() { free_low_water_ = pool_.free_count(); }

  private:
    net::BatchPool& pool_;
    net::BatchQueue& filled_;
    Capture* capture_ = nullptr;
    const net::Batch* reading_ = nullptr;
    std::size_t read_ = 0;  ///< datagrams
    std::size_t free_low_water_ = SIZE_MAX;
};

}  // namespace petacq::daemon
