#include "tools/petlm/reconstruction/image/image.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/petlm/base/status.hpp"

namespace petacq::image {
namespace {

constexpr double max_by_default = 256;

double length_of(const config::Scanner& scanner) {
    const auto last = scanner.geometry.crystal_count() - 1;
    return 2 * config::crystal_place(scanner, last).front_centre_mm[2] +
           scanner.dimensions.crystal_pitch_z_mm;
}

}  // namespace

Grid choose_grid(const config::Scanner& scanner, const petlm::ImageOptions& options) {
    const auto& d = scanner.dimensions;
    const double bore = 2 * d.ring_radius_mm;
    const double length = length_of(scanner);
    const double width = options.fov_mm.value_or(bore);
    if (!(width > 0 && width <= bore)) {
        throw petlm::UsageError(
            fmt::format("--fov-mm: expected more than 0 and up to {} (the bore), found {}", bore, width));
    }
    double voxel = std::max(std::min(d.crystal_pitch_y_mm, d.crystal_pitch_z_mm),
                            std::max(width, length) / max_by_default);
    if (options.voxel_mm) {
        voxel = *options.voxel_mm;
        if (!(voxel > 0 && voxel <= width)) {
            throw petlm::UsageError(fmt::format(
                "--voxel-mm: expected more than 0 and up to {} (the width of the image), found {}", width,
                voxel));
        }
    } else if (options.size) {
        voxel = width / *options.size;
    }
    const double across = std::max(1.0, std::round(width / voxel));
    const double along = std::max(1.0, std::ceil(length / voxel - 1e-6));
    if (across > max_voxels || along > max_voxels) {
        throw petlm::UsageError(
            fmt::format("--voxel-mm, --size: voxels of {} mm make {} x {} along x and z; expected at most {}",
                        voxel, across, along, max_voxels));
    }
    const auto n = static_cast<std::uint32_t>(across);
    return {{n, n, static_cast<std::uint32_t>(along)}, voxel};
}

}  // namespace petacq::image
