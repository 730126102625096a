// Finished datagrams, on their way from the boards.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tools/petsim/simulation/base/truth.hpp"

namespace petacq::sim {

/// A finished datagram that is waiting to be sent.
struct Packet {
    std::uint64_t key = 0;    ///< ticks at which it is sent
    std::uint64_t order = 0;  ///< within its source; never contradicts the key
    std::uint64_t sequence = 0;
    std::uint16_t source = 0;  ///< its number
    std::uint16_t epoch = 0;   ///< board resets before it
    std::uint32_t frames = 0;  ///< of hits
    std::uint32_t tags = 0;
    std::uint32_t copies = 1;
    bool malformed = false;
    std::uint16_t flags = 0;                   ///< TruthFlag: those of all its frames
    std::array<std::uint16_t, 5> by_status{};  ///< frames of hits, by Conversion::Status
    std::vector<std::byte> bytes;
};

/// The output of the streams.
struct StreamOutput {
    std::vector<Packet> packets;  ///< in order within each source, with keys that never fall
    std::vector<TruthRecord> truth;
    bool want_truth = false;
    std::vector<std::vector<std::byte>> spare;  ///< buffers for reuse

    std::vector<std::byte> take_buffer() {
        if (spare.empty()) return {};
        std::vector<std::byte> buffer = std::move(spare.back());
        spare.pop_back();
        return buffer;
    }
};

}  // namespace petacq::sim
