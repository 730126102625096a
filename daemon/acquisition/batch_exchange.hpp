// Where the acquisition thread gets its datagrams and where it returns their batches.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "net/batch_queue.hpp"

namespace petacq::daemon {

class Capture;

/// Datagrams come from the receivers, oldest first. Batches return to the pool when they have been taken and
/// used completely. What has been read goes to the raw capture of a run if it keeps one. No thread-safety.
class BatchExchange {
  public:
    /// Both outlive this object.
    BatchExchange(net::BatchPool& pool, net::BatchQueue& filled) : pool_(pool), filled_(filled) {}

    /// The next datagrams; nothing when there are none, with a timeout: when none come within it.
    std::optional<net::DatagramSpan> take() { return start_reading(filled_.take()); }
    std::optional<net::DatagramSpan> take(std::chrono::microseconds timeout) {
        return start_reading(filled_.take(timeout));
    }
    /// More records of the piece taken last are being read.
    void reading(std::size_t records) { read_ += records; }
    void read_completely();
    /// The batch that is being read; nullptr: none.
    [[nodiscard]] net::Batch* being_read() const { return piece_.batch; }
    /// Holds a batch once more: it must be given back once more.
    void hold(net::Batch* batch) { pool_.hold(batch); }
    /// Returns the batches and empties the list.
    void give_back(std::vector<net::Batch*>& batches);

    /// Host time up to which everything has been taken.
    [[nodiscard]] std::int64_t taken_until_ns() const { return filled_.taken_until_ns(); }
    /// Everything has been taken, and nothing will follow.
    [[nodiscard]] bool ended() const { return filled_.ended(); }

    /// Datagrams read from now on go to `capture` (nullptr: none), which outlives its use here.
    void start_capture(Capture* capture) { capture_ = capture; }
    /// The capture gets the datagrams up to the one that is being read.
    void stop_capture();

    /// A receiver waits for a batch, and may hold up the others.
    [[nodiscard]] bool awaited() const { return pool_.is_awaited(); }

    /// Batches of the pool, free or not.
    [[nodiscard]] std::size_t count() const { return pool_.count(); }
    /// The fewest free batches, as seen by take() and now, since the low water was last restarted.
    [[nodiscard]] std::size_t free_low_water() const { return std::min(free_low_water_, pool_.free_count()); }
    void restart_low_water() { free_low_water_ = pool_.free_count(); }

  private:
    std::optional<net::DatagramSpan> start_reading(std::optional<net::DatagramSpan> piece);
    void capture();

    net::BatchPool& pool_;
    net::BatchQueue& filled_;
    Capture* capture_ = nullptr;
    net::DatagramSpan piece_;  ///< taken last
    std::size_t read_ = 0;     ///< records of it
    std::size_t free_low_water_ = SIZE_MAX;
};

}  // namespace petacq::daemon
