#include "tools/petlm/reconstruction/em/continued_activity.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace petacq::image {
namespace {

constexpr double enough_prompts = 100;  // of a plane: its activity is then known to a tenth

}  // namespace

corrections::Activity continued_activity(const SeenActivity& seen,
                                         const corrections::AttenuatingObject& object, double beyond_mm) {
    const Grid& grid = seen.grid;
    const std::size_t plane = std::size_t{grid.n[0]} * grid.n[1];
    std::vector<double> of_plane(grid.n[2]);
    for (std::size_t z = 0; z < grid.n[2]; ++z)
        of_plane[z] = std::accumulate(&seen.sensitive[z * plane], &seen.sensitive[z * plane] + plane, 0.0);
    const double best = *std::max_element(of_plane.begin(), of_plane.end());
    const double enough =
        enough_prompts / std::max(seen.prompts, 1.0) * std::accumulate(of_plane.begin(), of_plane.end(), 0.0);
    const double least = std::clamp(enough, least_told * best, always_told * best);
    const auto told = [&](double sum) { return sum >= least; };
    const auto first =
        static_cast<std::size_t>(std::find_if(of_plane.begin(), of_plane.end(), told) - of_plane.begin());
    const std::size_t last =
        grid.n[2] - 1 -
        static_cast<std::size_t>(std::find_if(of_plane.rbegin(), of_plane.rend(), told) - of_plane.rbegin());
    const auto extent = object.extent();
    const double far = std::min(std::max(-extent.low[2], extent.high[2]), -grid.low(2) + beyond_mm);
    const auto more =
        static_cast<std::uint32_t>(std::max(0.0, std::ceil((far + grid.low(2)) / grid.voxel_mm)));
    corrections::Activity out{grid, {}};
    out.grid.n[2] += 2 * more;
    out.of_voxel.resize(out.grid.voxels());
    for (std::size_t z = 0; z < out.grid.n[2]; ++z) {
        const bool below = z < first + more;
        const bool above = z > last + more;
        for (std::size_t i = 0; i < plane; ++i) {
            const std::size_t from = below ? first : above ? last : z - more;
            const config::Vector3 at = {out.grid.centre(0, i % grid.n[0]), out.grid.centre(1, i / grid.n[0]),
                                        out.grid.centre(2, z)};
            if ((!below && !above) || object.per_cm(at) > 0)
                out.of_voxel[z * plane + i] = seen.image[from * plane + i];
        }
    }
    return out;
}

}  // namespace petacq::image
