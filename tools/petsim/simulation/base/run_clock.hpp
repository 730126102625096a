// Times of a simulation in ticks.
#pragma once

#include <cstdint>
#include <limits>

#include "config/scanner/scanner.hpp"

namespace petacq::sim {

/// A time that does not come.
inline constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

/// The detector's clock, as seen from the time at which decays begin.
struct RunClock {
    const config::Scanner& scanner;
    std::uint64_t begin;  ///< ticks

    /// Ticks of a duration.
    [[nodiscard]] std::uint64_t ticks(double seconds) const { return config::ticks_of(seconds, scanner); }
    /// The time so many seconds after the begin.
    [[nodiscard]] std::uint64_t at(double seconds) const { return begin + ticks(seconds); }
};

}  // namespace petacq::sim
