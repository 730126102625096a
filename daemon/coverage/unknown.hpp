// The phrases in the list `unknown` of a coverage that programs ask for.
#pragma once

#include <algorithm>
#include <string_view>

#include "daemon/coverage/coverage.hpp"

namespace petacq::daemon {

inline constexpr const char* unknown_energies = "the energies of its photons (0 in each record)";
inline constexpr const char* unknown_dt = "the time between the photons of its pairs (0 in each record)";

/// Whether the records have it, as far as the coverage says.
inline bool tells(const Coverage& coverage, std::string_view phrase) {
    return std::find(coverage.unknown.begin(), coverage.unknown.end(), phrase) == coverage.unknown.end();
}

}  // namespace petacq::daemon
