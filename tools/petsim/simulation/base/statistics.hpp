// Exact counts of what was simulated and sent.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/petsim/simulation/base/chunk.hpp"
#include "tools/petsim/simulation/base/options.hpp"

namespace petacq::sim {

/// The counts of a receiver that gets every datagram in the order of sending; sequenced framing.
struct Expected {
    std::uint64_t received = 0;   ///< datagrams, copies included
    std::uint64_t malformed = 0;  ///< of these
    std::uint64_t duplicate = 0;
    std::uint64_t reordered = 0;   ///< not malformed or duplicate, after a higher sequence number
    std::uint64_t lost = 0;        ///< gaps in the sequence numbers of the others
    std::uint64_t frames = 0;      ///< in datagrams neither malformed nor duplicate
    std::uint64_t tags = 0;        ///< in the same datagrams, not among the frames
    std::uint64_t bad_marker = 0;  ///< of the frames
    std::uint64_t bad_address = 0;
    std::uint64_t outside_crystal = 0;
    std::uint64_t bad_time = 0;
};

struct SourceStatistics {
    std::uint64_t hits = 0;         ///< detected in the modules of the source
    std::uint64_t dead_time = 0;    ///< hits during dead time, which give no frame
    std::uint64_t piled_up = 0;     ///< hits added to the frame of an earlier one
    std::uint64_t silenced = 0;     ///< hits while the source or their unit was silent, which give no frame
    std::uint64_t frames = 0;       ///< generated = sent + lost
    std::uint64_t frames_sent = 0;  ///< not counting second copies
    std::uint64_t frames_lost = 0;
    std::uint64_t tags = 0;       ///< generated = sent + lost; not among the frames
    std::uint64_t tags_sent = 0;  ///< not counting second copies
    std::uint64_t tags_lost = 0;
    std::uint64_t tags_silenced = 0;   ///< due while the source was silent, never generated
    std::uint64_t datagrams = 0;       ///< generated, heartbeats and end of stream included; = sent + lost
    std::uint64_t datagrams_sent = 0;  ///< not counting second copies
    std::uint64_t datagrams_lost = 0;
    std::uint64_t heartbeats = 0;
    std::uint64_t duplicated = 0;
    std::uint64_t held_back = 0;
    std::array<std::uint64_t, field_count> corrupted{};  ///< datagrams, by field
    std::uint64_t clock_jumped = 0;                      ///< datagrams whose times carry a jump
    std::uint64_t resets = 0;
    std::uint64_t bytes_sent = 0;  ///< UDP payload, copies included
    Expected expected;
};

struct Statistics {
    EventCounts events;
    double decays = 0;    ///< mean number of positrons emitted
    double followed = 0;  ///< mean number of them followed one by one
    double seconds = 0;   ///< detector time simulated
    std::vector<SourceStatistics> sources;
    [[nodiscard]] SourceStatistics total() const;
};

nlohmann::json to_json(const Statistics& statistics, bool sequenced);
/// Text of several lines.
std::string to_text(const Statistics& statistics, bool sequenced);

}  // namespace petacq::sim
