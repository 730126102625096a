// Reasons as people read them: those of one code together, causes first.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/status/lasting_reasons.hpp"

namespace petacq::daemon {

/// Reasons of one code, as people read them.
struct RankedReason {
    const char* code = "";
    std::size_t count = 1;
    std::string message;  ///< "23 BDMs above 50 C: 0, 2, 6, ...; the worst: BDM 6 is at 61.0 C: ..."
    bool failed = false;
    std::chrono::steady_clock::time_point since;  ///< of the first
    std::chrono::steady_clock::time_point seen;   ///< of the last
    /// The code of a reason above it that explains it; empty: none does.
    std::string_view follows_from;
};

/// Reasons of one code are one. The failed ones first, then causes before their consequences.
std::vector<RankedReason> ranked(const std::vector<const HealthReason*>& reasons);
std::vector<RankedReason> ranked(const std::vector<HealthReason>& reasons);

}  // namespace petacq::daemon
