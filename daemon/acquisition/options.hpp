// The configuration of the acquisition thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "net/wire.hpp"

namespace petacq::daemon {

struct AcquisitionOptions {
    std::uint32_t slice_frames = 262'144;
    std::chrono::milliseconds slice_interval{20};
    /// When more singles than this wait for the watermark, slow sources are given up. The pipeline has room
    /// for pending_slack slices more; beyond that the run fails.
    std::uint64_t max_pending_singles = 16U << 20;
    /// A run that is asked to stop ends without its last singles when the watermark has not passed them
    /// within this host time.
    std::chrono::milliseconds stop_timeout{10'000};
    /// The longest that a datagram takes from its socket to the acquisition thread.
    std::chrono::milliseconds receive_delay{20};
    net::Framing framing = net::Framing::sequenced;
    std::uint64_t max_offset = 0;    ///< ticks: largest magnitude of a time offset
    std::uint64_t max_disorder = 0;  ///< ticks
    std::uint64_t max_lag = 0;       ///< ticks
    std::uint64_t second = 0;        ///< ticks: length of a row of the ledger over time; 0: one row in all
    /// Replay: the host time up to which all datagrams have been handed over. Live: nullptr.
    const std::atomic<std::int64_t>* replay_clock = nullptr;
};

/// Slices that may wait beyond max_pending_singles: the one that exceeds it, the one with which slow sources
/// are given up, and one that closes a run.
inline constexpr std::uint64_t pending_slack = 3;

}  // namespace petacq::daemon
