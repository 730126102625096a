// Host time as the acquisition thread uses it, live or in a replay.
//
// Host time (steady clock, ns) decides when a source counts as silent. It advances with the arrival times of
// the batches: a datagram must not look late only because this thread was slow to read it. When no batch
// waits, live host time is the present; in a replay it is the time up to which the replayer has handed over
// all datagrams, so that nothing depends on the speed of the machine.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace petacq::daemon {

/// No thread-safety, except that another thread may set the clock of a replay.
class HostClock {
  public:
    /// Live. A datagram takes at most `receive_delay` from its socket to the acquisition thread.
    explicit HostClock(std::chrono::nanoseconds receive_delay) : receive_delay_ns_(receive_delay.count()) {}
    /// Replay. `clock` outlives this object. `second`: ticks of detector time.
    HostClock(const std::atomic<std::int64_t>& clock, std::uint64_t second)
        : replay_clock_(&clock), second_(second) {}

    [[nodiscard]] bool live() const { return replay_clock_ == nullptr; }
    /// The time up to which datagrams have been read. Never goes back.
    [[nodiscard]] std::int64_t now_ns() const { return now_ns_; }
    void batch_arrived(std::int64_t arrival_ns) { now_ns_ = std::max(now_ns_, arrival_ns); }
    /// No batch is waiting: datagrams that have not arrived by now are treated as late.
    void queue_is_empty() { now_ns_ = std::max(now_ns_, host_ns()); }
    /// When now_ns() reaches this time, all datagrams have been read that have been received by this call. In
    /// a replay this is always so: a replay is asked to stop only when everything has been read.
    [[nodiscard]] std::int64_t received_so_far_is_read_ns() const;

    /// Replay only: whether a slice must end with data up to `newest` (ticks), so that rows of the ledger
    /// over time end at the same frames however fast the replay runs. True about four times per second of
    /// detector time; always false in live mode.
    bool ends_step(std::uint64_t newest);

  private:
    [[nodiscard]] std::int64_t host_ns() const;

    const std::atomic<std::int64_t>* replay_clock_ = nullptr;
    std::int64_t receive_delay_ns_ = 0;
    std::uint64_t second_ = 0;
    std::int64_t now_ns_ = 0;
    std::uint64_t next_step_ = 0;
};

}  // namespace petacq::daemon
