// A number that looks random, and is the same every time.
#pragma once

#include <cstdint>

namespace petacq::image {

/// The finaliser of SplitMix64 (Steele, Lea, Flood).
inline std::uint64_t mixed(std::uint64_t v) {
    v = (v ^ (v >> 30U)) * 0xBF58476D1CE4E5B9U;
    v = (v ^ (v >> 27U)) * 0x94D049BB133111EBU;
    return v ^ (v >> 31U);
}

}  // namespace petacq::image
