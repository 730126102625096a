// Where a point source on a line through the scanner was, from the pairs that it left.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "config/median.hpp"
#include "config/scanner/scanner.hpp"
#include "gpu/base/records.hpp"

namespace petacq::test {

/// The median over the pairs of the place along the axis `along` (0 to 2) at which the line between the front
/// faces passes the line through the origin in that direction.
inline double point_along(const config::Scanner& scanner, std::span<const gpu::Coincidence> pairs,
                          std::size_t along) {
    std::vector<double> places;
    for (const gpu::Coincidence& pair : pairs) {
        const auto a = config::crystal_place(scanner, pair.crystal_a).front_centre_mm;
        const auto b = config::crystal_place(scanner, pair.crystal_b).front_centre_mm;
        double across = 0;  // squared length of b - a across the axis
        double projected = 0;
        for (std::size_t i = 0; i < 3; ++i) {
            if (i == along) continue;
            across += (b[i] - a[i]) * (b[i] - a[i]);
            projected -= a[i] * (b[i] - a[i]);
        }
        // Lines along the axis say little about the place.
        const double axial = b[along] - a[along];
        if (across < 4 * axial * axial) continue;
        places.push_back(a[along] + projected / across * axial);
    }
    if (places.empty()) return std::nan("");
    return config::median(std::move(places));
}

}  // namespace petacq::test
