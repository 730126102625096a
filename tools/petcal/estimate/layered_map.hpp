// The crystal map of a detector unit of any scanner, whose layers lie side by side in the flood map.
#pragma once

#include <cstdint>
#include <span>

#include "config/scanner/scanner.hpp"
#include "tools/petcal/estimate/crystal_map.hpp"

namespace petacq::petcal {

/// Of a ring as derive_unit_map. Of the long form, where spots are by local crystal and the table has these,
/// each layer has a field of the map of its own (config/flood_layout.hpp); where the field ends is where the
/// counts between two are fewest, near the place by the layout. A layer that is refused refuses the unit.
/// `known`: by origin of a ring, by local crystal of the long form. REQUIRES: a unit that exists.
UnitMap derive_map(const config::Scanner& scanner, std::uint32_t unit, std::span<const std::uint32_t> flood,
                   std::span<const KnownSpot> known = {});

}  // namespace petacq::petcal
