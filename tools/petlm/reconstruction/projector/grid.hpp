// The voxels of an image.
#pragma once

#include <array>
#include <cmath>
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
/// Where in a crystal the lines of a pair end: at one or two depths, each with its share of the photons.
struct Depths {
    Point at[2];     // NOLINT(modernize-avoid-c-arrays)
    float share[2];  // NOLINT(modernize-avoid-c-arrays)
    int count;
};
/// Two depths have the mean, the variance and the skewness of those at which the crystal absorbs photons (the
/// quadrature of Gauss with two nodes). Where they would be less than half a voxel apart across the
/// line, there is one. `cosine`: of the line to the length of the crystal, which is
/// `apart_mm` from the other.
PETACQ_HD inline Depths depths_of(const config::CrystalPlace& place, const config::DepthOfInteraction& depth,
                                  double cosine, double apart_mm, double voxel_mm) {
    const config::DepthOfInteraction::DepthMoments moments = depth.moments(cosine, apart_mm);
    const auto at = [&](double mm) {
        return point_of({place.front_centre_mm[0] + mm * place.outward[0],
                         place.front_centre_mm[1] + mm * place.outward[1],
                         place.front_centre_mm[2] + mm * place.outward[2]});
    };
    const double deviation = std::sqrt(moments.variance);
    const double half_skewness = deviation > 0 ? moments.third / (2 * moments.variance * deviation) : 0;
    const double root = std::sqrt(1 + half_skewness * half_skewness);
    const double apart = 2 * deviation * root;
    if (!(4 * apart * apart * (1 - cosine * cosine) > voxel_mm * voxel_mm))
        return {{at(moments.mean), {}}, {1, 0}, 1};
    const auto near = static_cast<float>((root + half_skewness) / (2 * root));
    return {{at(moments.mean + deviation * (half_skewness - root)),
             at(moments.mean + deviation * (half_skewness + root))},
            {near, 1 - near},
            2};
}

/// The lines along which the photons of a pair may have flown (nothing else says where they are): one to
/// four, with shares of its photons that add up to 1. No depth is measured, and far from the axis it decides
/// where a line passes: an image made of lines at the mean depths alone has points that are skew and out of
/// place.
struct LinesOfPair {
    Depths a;
    Depths b;

    /// Calls use(line, share) for each.
    template <class Use>
    PETACQ_HD void each(Use&& use) const {
        for (int i = 0; i < a.count; ++i) {
            for (int j = 0; j < b.count; ++j)
                use(Line{a.at[i], b.at[j]}, a.share[i] * b.share[j]);
        }
    }
    static constexpr std::size_t most = 4;
};
PETACQ_HD inline LinesOfPair lines_of(const config::CrystalPlace* places, const config::DepthOfEach& depths,
                                      Pair pair, double voxel_mm) {
    const config::CrystalPlace& a = places[pair.a];
    const config::CrystalPlace& b = places[pair.b];
    const double apart_mm = std::sqrt(config::square_of_distance(a, b));
    const config::Cosines cosines = config::cosines_of(a, b, apart_mm);
    return {depths_of(a, depths.of(pair.a), cosines.a, apart_mm, voxel_mm),
            depths_of(b, depths.of(pair.b), cosines.b, apart_mm, voxel_mm)};
}
inline LinesOfPair lines_of(const config::LineGeometry& geometry, Pair pair, double voxel_mm) {
    return lines_of(geometry.places.data(), geometry.depths(), pair, voxel_mm);
}

}  // namespace petacq::image
