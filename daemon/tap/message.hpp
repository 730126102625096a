// The messages of the live tap. docs/reference/tap.md describes them byte by byte.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace petacq::daemon {

static_assert(std::endian::native == std::endian::little, "messages are sent as they are in memory");

inline constexpr std::uint32_t tap_version = 1;

enum class TapMessage : std::uint32_t {
    run_started = 1,  ///< the payload is the run id
    records = 2,      ///< the payload is records, as in list-mode
    run_ended = 3,    ///< no payload
};

/// Precedes the payload of each message.
struct TapHeader {
    std::array<char, 8> magic = {'P', 'E', 'T', 'A', 'C', 'Q', 'T', 'P'};
    TapMessage type = TapMessage::records;
    std::uint32_t payload_bytes = 0;
    std::uint64_t run = 0;           ///< 1, 2, ... since the daemon started
    std::uint64_t first_record = 0;  ///< number of the first record in its run
    std::uint64_t records = 0;
    std::uint64_t first_time = 0;  ///< ticks, of the first record
    std::uint64_t last_time = 0;   ///< ticks, of the last record
    std::uint64_t dropped = 0;     ///< chosen records before this message that the client did not get
};
static_assert(sizeof(TapHeader) == 64);

}  // namespace petacq::daemon
