// petbench live --overload: a run in which more arrives for a while than the daemon can take.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/petbench/live/step.hpp"

namespace petacq::bench {

struct OverloadOptions {
    double rate = 0;     ///< frames per second before and after: one that the daemon can take
    double seconds = 0;  ///< before, and after
    double factor = 0;   ///< times that rate in the overload
    double overload_seconds = 0;
};

struct OverloadResult {
    double offered = 0;      ///< frames per second that the senders reached in the overload
    double kept = 0;         ///< frames per second that went through the pipeline meanwhile
    std::uint64_t sent = 0;  ///< datagrams
    // Datagrams of the ledger.
    std::int64_t accepted = 0;
    std::int64_t dropped_no_buffer = 0;
    std::int64_t dropped_kernel = 0;
    std::int64_t lost = 0;
    /// Datagrams dropped or lost later than a second after the overload.
    std::int64_t lost_afterwards = 0;
    /// Coincidences of the run; those of the replay of its raw capture are the same unless a fault says
    /// otherwise.
    std::optional<std::uint64_t> replayed;
    std::uint64_t capture_dropped = 0;  ///< datagrams missing from the raw capture: it was not replayed
    std::vector<std::string> faults;    ///< what an overload must not do
};

/// `ordinary`: the stream before and after; `more`: in the overload. Removes what was written. Replays the
/// raw capture, if the configuration asks for one.
OverloadResult run_overload(const LiveSite& site, const nlohmann::json& configuration, LiveStream& ordinary,
                            LiveStream& more, const OverloadOptions& options);

/// A line or two.
void print(const OverloadOptions& options, const OverloadResult& result);

}  // namespace petacq::bench
