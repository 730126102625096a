// Which BDMs a scanner has.
#pragma once

#include <cstdint>
#include <vector>

#include "config/scanner/geometry.hpp"

namespace petacq::config {

/// Numbers of the BDMs that have units, rising. They are all below bdm_count; in the long form the channel
/// map may leave some out.
inline std::vector<std::uint32_t> existing_modules(const Geometry& g) {
    std::vector<std::uint32_t> numbers;
    for (std::uint32_t bdm = 0; bdm < g.bdm_count; ++bdm)
        if (g.module_exists(bdm)) numbers.push_back(bdm);
    return numbers;
}

}  // namespace petacq::config
