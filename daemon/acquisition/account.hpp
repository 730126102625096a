// The ledger of everything since the daemon started.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/run/ledger.hpp"
#include "daemon/tracking/source_tracker.hpp"
#include "gpu/pipeline.hpp"
#include "net/wire.hpp"

namespace petacq::net {
struct ReceiverCounters;
}

namespace petacq::daemon {

/// Combines the counts of the acquisition thread with those of receivers and sources. No thread-safety,
/// except that the receivers count meanwhile.
class Account {
  public:
    /// How to read the receivers' counters. `quick`: each for itself, so that identities may not close.
    /// `one_moment`: all of one moment, for the start and the end of a run; may wait for a receiver.
    enum class Reading { quick, one_moment };

    /// The counters outlive this object.
    Account(std::vector<const net::ReceiverCounters*> receivers, net::Framing framing);

    /// A datagram that a receiver delivered has reached the acquisition thread.
    void add_datagram() { ++datagrams_; }
    /// Frames of an accepted datagram.
    void add_frames(std::uint64_t frames) { frames_ += frames; }
    /// A slice that the pipeline has processed.
    void add(const gpu::SliceResult& result);

    /// `frames_under_way`: accepted and not through the pipeline. `pending`: singles not decided.
    [[nodiscard]] Ledger total(Reading reading, const TrackerTotals& sources, std::uint64_t frames_under_way,
                               std::uint64_t pending) const;
    /// UDP payload.
    [[nodiscard]] std::uint64_t bytes_received() const;

  private:
    const std::vector<const net::ReceiverCounters*> receivers_;
    Ledger counted_;  ///< results of the pipeline
    std::uint64_t datagrams_ = 0;
    std::uint64_t frames_ = 0;
};

}  // namespace petacq::daemon
