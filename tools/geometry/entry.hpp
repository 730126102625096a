// Where a ray enters a crystal.
#pragma once

#include <cstdint>

namespace petacq::geometry {

struct Entry {
    std::uint32_t crystal;
    double distance_mm;  ///< from the origin of the ray to the front face
};

}  // namespace petacq::geometry
