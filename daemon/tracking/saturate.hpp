// Sums and differences of unsigned numbers that saturate instead of wrapping around.
#pragma once

#include <cstdint>
#include <limits>

namespace petacq::daemon {

inline std::uint64_t add_or_max(std::uint64_t a, std::uint64_t b) {
    constexpr std::uint64_t max = std::numeric_limits<std::uint64_t>::max();
    return a > max - b ? max : a + b;
}

inline std::uint64_t subtract_or_zero(std::uint64_t a, std::uint64_t b) {
    return a < b ? 0 : a - b;
}

}  // namespace petacq::daemon
