// The voxels of an image.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "config/depth_of_interaction.hpp"
#include "net/wire.hpp"

namespace petacq::image {

/// A box of cubic voxels whose middle is the origin, in the axes of docs/reference/geometry.md. Voxel (x, y,
/// z) has the index (z * n[1] + y) * n[0] + x: x runs fastest, as in NIfTI.
struct Grid {
    std::array<std::uint32_t, 3> n{};  ///< along x, y, z
    double voxel_mm = 0;

    [[nodiscard]] std::size_t voxels() const { return std::size_t{n[0]} * n[1] * n[2]; }
    /// Lower face of the box, mm.
    [[nodiscard]] double low(std::size_t axis) const { return -0.5 * n[axis] * voxel_mm; }
    /// Middle of voxel i, mm.
    [[nodiscard]] double centre(std::size_t axis, std::size_t i) const {
        return low(axis) + (static_cast<double>(i) + 0.5) * voxel_mm;
    }
};

/// A point at which a line ends, mm.
struct Point {
    float x[3];  // NOLINT(modernize-avoid-c-arrays): device code reads it
};
PETACQ_HD inline Point point_of(const config::Vector3& at) {
    return {{static_cast<float>(at[0]), static_cast<float>(at[1]), static_cast<float>(at[2])}};
}

/// Two crystals, a below b.
struct Pair {
    std::uint32_t a;
    std::uint32_t b;
};

/// From a crystal to another.
struct Line {
    Point from;
    Point to;
};
/// The line of a pair. Nothing else says where lines end.
PETACQ_HD inline Line line_of(const config::CrystalPlace* places, const config::DepthOfInteraction& depth,
                              Pair pair) {
    const config::CrystalPlace& a = places[pair.a];
    const config::CrystalPlace& b = places[pair.b];
    const config::LineEnds ends = config::line_ends(a, b, depth, std::sqrt(config::square_of_distance(a, b)));
    return {point_of(ends.a), point_of(ends.b)};
}
inline Line line_of(const config::LineGeometry& geometry, Pair pair) {
    return line_of(geometry.places.data(), geometry.depth, pair);
}

}  // namespace petacq::image
