// The image quality phantom of NEMA NU 4-2008 in an image: its regions and their values.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "tools/nifti/nifti.hpp"
#include "tools/petlm/nema/standard.hpp"

namespace petacq::nema {

/// An image with the axes of the scanner. Voxel (x, y, z) has the index (z * n[1] + y) * n[0] + x.
struct Image {
    std::array<std::size_t, 3> n{};
    std::array<double, 3> voxel_mm{};
    std::array<double, 3> origin_mm{};  ///< middle of voxel (0, 0, 0)
    std::vector<float> values;

    [[nodiscard]] double centre(std::size_t axis, std::size_t i) const {
        return origin_mm[axis] + static_cast<double>(i) * voxel_mm[axis];
    }
};
/// Throws petlm::BadInput when the axes of the voxels are turned or mirrored.
Image image_of(nifti::Volume volume);

/// Millimetres. Along the axis of the phantom, from the middle of its 50 mm: rods from 5 to 25, the uniform
/// region from -10 to 5, cold chambers from -25 to -10.
namespace iq {
inline constexpr std::array<double, 5> rod_diameters = {1, 2, 3, 4, 5};
inline constexpr double rods_at = 7;  ///< from the axis, 72 degrees apart
inline constexpr double rods_middle = 15;
inline constexpr double rods_length = 10;  ///< of the middle part that is measured
inline constexpr double uniform_middle = -2.5;
inline constexpr double cold_middle = -17.5;
inline constexpr double cold_at = 7.5;  ///< from the axis, opposite each other
}  // namespace iq

/// How the phantom lies: found in the image.
struct IqPlace {
    std::array<double, 3> middle_mm{};
    int rods_towards = 1;     ///< +1: rods at high z; -1: at low z
    double largest_deg = 0;   ///< angle of the 5 mm rod around +z
    int towards_smaller = 1;  ///< +1: the smaller rods follow counter-clockwise, seen from +z
    double cold_deg = 0;      ///< angle of one cold chamber; the other lies opposite

    [[nodiscard]] double z_of(double along) const { return middle_mm[2] + rods_towards * along; }
    /// Middle of a rod, by its place in rod_diameters.
    [[nodiscard]] std::array<double, 2> rod(std::size_t number) const;
    [[nodiscard]] std::array<double, 2> cold(std::size_t number) const;
};
/// Throws petlm::BadInput when the image does not cover the phantom or shows no rods.
IqPlace find_phantom(const Image& image, const std::array<double, 3>& middle_mm);

struct Planes {
    std::size_t from = 0;
    std::size_t to = 0;  ///< exclusive
};
/// With their middle no further than half the length from `middle`. Throws petlm::BadInput when there are
/// none.
Planes planes_of(const Image& image, double middle, double length);
/// Mean over planes, row by row.
std::vector<double> mean_plane(const Image& image, const Planes& planes);

struct VoxelStatistics {
    std::size_t voxels = 0;
    double mean = unknown;
    double deviation = unknown;  ///< standard deviation of a voxel
    double least = unknown;
    double most = unknown;

    [[nodiscard]] double percent() const { return 100 * deviation / mean; }
};

struct IqValues {
    VoxelStatistics uniform;
    struct Rod {
        double diameter_mm = 0;
        std::array<double, 2> at_mm{};  ///< of the largest voxel
        double recovery = unknown;
        double percent = unknown;  ///< %STD_RC
    };
    std::vector<Rod> rods;
    struct Cold {
        std::array<double, 2> at_mm{};
        double spill_over = unknown;
        double percent = unknown;  ///< %STD_SOR
    };
    std::vector<Cold> cold;
    /// Mean of the planes of the rods; from the bottom to the top.
    Chart::Map rods_plane;
};
/// By the rules of the standard. Throws petlm::BadInput when a region holds no voxel.
IqValues values_of(const Image& image, const IqPlace& place);

}  // namespace petacq::nema
