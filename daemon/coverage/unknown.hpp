// Phrases in the list `unknown` of a coverage that programs ask for, or change.
#pragma once

#include <algorithm>
#include <string_view>

#include "daemon/coverage/coverage.hpp"

namespace petacq::daemon {

inline constexpr const char* unknown_times = "when its records were taken, and for how long";
inline constexpr const char* unknown_clock = "the time of day";
inline constexpr const char* unknown_rules = "the rules by which its records were made";
inline constexpr const char* unknown_singles_window = "the energy window of its singles";
inline constexpr const char* unknown_half_life = "half-life and branching ratio of its nuclide";
inline constexpr const char* unknown_energies = "the energies of its photons (0 in each record)";
inline constexpr const char* unknown_dt = "the time between the photons of its pairs (0 in each record)";

/// Whether the records have it, as far as the coverage says.
inline bool tells(const Coverage& coverage, std::string_view phrase) {
    return std::find(coverage.unknown.begin(), coverage.unknown.end(), phrase) == coverage.unknown.end();
}

}  // namespace petacq::daemon
