// The slow, obvious reference for lines that meet a field of view.
#pragma once

#include "config/scanner/channel_map.hpp"

namespace petacq::test {

/// Whether the segment between the front faces of two crystals meets the field of view. Exact for positions
/// of up to 1 m.
bool reference_line_meets(const config::FieldOfView& view, const config::PairGeometry::Crystal& a,
                          const config::PairGeometry::Crystal& b);

}  // namespace petacq::test
