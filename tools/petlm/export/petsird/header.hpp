// The head of a PETSIRD file: the schema of its version, the scanner and the examination.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "daemon/coverage/coverage.hpp"
#include "tools/petlm/export/petsird/efficiencies.hpp"
#include "tools/petlm/export/petsird/other_blocks.hpp"

namespace petacq::petsird {

struct HeaderFacts {
    const EfficiencySource& efficiencies;  ///< and the scanner
    const Bins& bins;
    const PetsirdOptions& options;
    const daemon::Coverage& coverage;
    const std::vector<Signal>& signals;
    bool singles = false;                                          ///< the file has singles histograms
    bool delayeds = false;                                         ///< and delayeds
    std::optional<std::chrono::system_clock::time_point> start{};  ///< of the data
    std::string subject{};
    std::string note{};
};

/// The bytes of the head. Appends what the efficiencies lack to `not_held`.
std::string head_of(const HeaderFacts& facts, std::vector<std::string>& not_held);

/// mm from the middle of the line, for a difference of one picosecond.
inline constexpr double half_light_mm_per_ps = 0.299792458 / 2;

}  // namespace petacq::petsird
