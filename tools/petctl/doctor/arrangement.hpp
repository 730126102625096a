// Ways in which the eight bytes of a time or of a sequence number are sent by mistake.
#pragma once

#include <array>
#include <cstdint>

#include "net/wire.hpp"

namespace petacq::petctl {

struct Arrangement {
    std::uint64_t (*value)(std::uint64_t sent);  ///< what was meant
    const char* text;                            ///< "is little-endian"; "" for the right one, the first
};

inline std::uint64_t swap_halves(std::uint64_t v) {
    return v << 32 | v >> 32;
}

inline const std::array arrangements{
    Arrangement{[](std::uint64_t v) { return v; }, ""},
    Arrangement{net::swap_bytes, "its bytes swapped (little-endian)"},
    Arrangement{swap_halves, "its two 32-bit words exchanged"},
    Arrangement{[](std::uint64_t v) { return swap_halves(net::swap_bytes(v)); },
                "the bytes of each 32-bit word swapped"},
};

}  // namespace petacq::petctl
