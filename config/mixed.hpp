// Numbers that look random or are spread evenly, and are the same every time.
#pragma once

#include <cstdint>

namespace petacq::config {

/// The finaliser of SplitMix64 (Steele, Lea, Flood).
inline std::uint64_t mixed(std::uint64_t v) {
    v = (v ^ (v >> 30U)) * 0xBF58476D1CE4E5B9U;
    v = (v ^ (v >> 27U)) * 0x94D049BB133111EBU;
    return v ^ (v >> 31U);
}

/// Number i of Roberts' additive sequence for two dimensions, in [0, 1): the points (0, 1) of the first i are
/// even over the square, for every i.
inline double even_share(std::uint64_t i, int dimension) {
    const std::uint64_t step = dimension == 0 ? 0xC13FA9A902A6328FU : 0x91E10DA5C79E7B1DU;
    return static_cast<double>((i + 1) * step >> 11U) * 0x1p-53;
}

}  // namespace petacq::config
