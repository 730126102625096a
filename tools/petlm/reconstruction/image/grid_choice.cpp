#include "tools/petlm/reconstruction/image/image.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/geometry/bore.hpp"
#include "tools/petlm/base/status.hpp"

namespace petacq::image {
namespace {

constexpr double max_by_default = 256;

}  // namespace

Grid choose_grid(const config::Scanner& scanner, const petlm::ImageOptions& options) {
    const geometry::Bore bore = geometry::bore_of(scanner);
    const double widest = 2 * bore.furthest_mm;
    const double length = 2 * bore.half_length_mm;
    const double width = options.fov_mm.value_or(2 * bore.radius_mm);
    if (!(width > 0 && width <= widest)) {
        throw petlm::UsageError(
            fmt::format("--fov-mm: expected more than 0 and up to {} (the bore), found {}", widest, width));
    }
    double voxel = std::max(bore.finest_mm, std::max(width, length) / max_by_default);
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
