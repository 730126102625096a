// What becomes of a datagram.
#pragma once

#include <cstdint>
#include <limits>

namespace petacq::daemon {

/// In tags of a source that is not listed, with bare framing.
inline constexpr std::uint16_t no_tag_source = 0xFFFF;

/// The verdict on a datagram. Frames outside [time_low, time_high] are time jumps; if time_low is above
/// time_high, all frames are.
struct Verdict {
    std::uint64_t time_low = 0;
    std::uint64_t time_high = std::numeric_limits<std::uint64_t>::max();
    std::uint32_t source = 0;  ///< position of the source in the status
    /// What names the source in its tags: the id, or the position in the list of senders, if it is there.
    std::uint16_t tag_source = no_tag_source;
    bool use = true;  ///< false: discard the frames (a copy, or too many sources)
    /// Datagrams that this one shows to be missing. Negative: they were thought missing.
    std::int64_t lost = 0;
    bool loss_known = true;  ///< false: its number says nothing
    /// All frames are refused for now: the clock of a member has moved, or it was one wrong time; it is
    /// wrong, or all clocks are stepping ahead. SourceTracker::reconsider() tells when that is decided.
    bool open = false;

    /// Whether a frame of this time is no time jump.
    [[nodiscard]] bool believes(std::uint64_t time) const { return time_low <= time && time <= time_high; }
    [[nodiscard]] bool refuses_all() const { return time_low > time_high; }
    /// All frames are time jumps.
    void refuse_all() {
        time_low = 1;
        time_high = 0;
    }
};

}  // namespace petacq::daemon
