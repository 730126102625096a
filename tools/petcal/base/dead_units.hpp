// Dead crystals as people look for them: whole detector units, and single crystals of the others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/scanner/geometry.hpp"

namespace petacq::petcal {

struct DeadCrystals {
    std::vector<std::uint32_t> units;   ///< bdm * du_count + du: all crystals are dead
    std::vector<std::string> crystals;  ///< names of the dead crystals of other units
};

/// `efficiency`: [crystal]; 0: dead.
DeadCrystals find_dead(const config::Geometry& geometry, const std::vector<float>& efficiency);

}  // namespace petacq::petcal
