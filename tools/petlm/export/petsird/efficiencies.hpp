// The detection efficiencies in the header of a PETSIRD file.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/petlm/export/petsird/bins.hpp"
#include "tools/petlm/reconstruction/corrections/line_factors.hpp"

namespace petacq::petsird {

/// What detection efficiencies come from.
struct EfficiencySource {
    const config::Scanner& scanner;
    std::uint32_t min_module_difference = 0;
    const corrections::LineFactors* normalised = nullptr;  ///< with a normalisation; null: none is known
};

/// In all tables of a normalisation together; more make the header too long.
inline constexpr std::size_t most_pair_efficiencies = std::size_t{1} << 22U;

/// Without a normalisation all are 1, but for pairs of modules that were not in coincidence. Appends what
/// they lack to `not_held`.
void put_efficiencies(Coded& out, const EfficiencySource& source, const Bins& bins, Version version,
                      std::vector<std::string>& not_held);

}  // namespace petacq::petsird
