// Random scanners of the long form of a scanner description.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "config/scanner/scanner.hpp"
#include "gpu/rules/coincidence_rules.hpp"
#include "tests/gpu/base/random.hpp"

namespace petacq::test {

struct RandomArrangement {
    config::Scanner scanner;
    std::string description;  ///< JSON
};

/// Of at most `most` crystals: rings, arcs, polygons, boxes, panels and single modules of one or two types,
/// with layers, unequal crystals, any channel map and any rule of good pairs. At most 256 BDMs, and 200
/// crystals in a unit.
RandomArrangement random_arrangement(Rng& rng, std::uint32_t most = 600);

/// Rules that limit the good pairs of this scanner by the difference of modules and of rings, or by neither.
gpu::CoincidenceRules random_limits(const config::Geometry& geometry, Rng& rng);

}  // namespace petacq::test
