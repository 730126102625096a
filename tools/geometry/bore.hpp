// The room inside a scanner, by the front faces of its modules.
#pragma once

#include "config/scanner.hpp"

namespace petacq::geometry {

/// All in mm.
struct Bore {
    double radius_mm = 0;       ///< of the largest cylinder around the axis that no module reaches into
    double furthest_mm = 0;     ///< from the axis to the front face that is furthest from it
    double last_centre_mm = 0;  ///< along the axis, from the origin to the crystal that is furthest from it
    double half_length_mm = 0;  ///< the same to the end of the crystals
    double finest_mm = 0;       ///< the shortest side of the front face of a crystal
    double coarsest_mm = 0;     ///< the longest
};

Bore bore_of(const config::Scanner& scanner);

}  // namespace petacq::geometry
