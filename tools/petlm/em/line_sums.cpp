#include "tools/petlm/em/line_sums.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

#include "tools/petlm/projector/for_each_on.hpp"
#include "tools/petlm/projector/ray.hpp"

namespace petacq::image {
namespace {

constexpr std::size_t shares = 8;
constexpr std::size_t most_voxels_of_sums = std::size_t{1} << 21U;  // 128 MiB for all shares
constexpr double most_steps_of_sums = 3e9;

}  // namespace

bool few_lines(const config::Geometry& geometry, const Grid& grid) {
    const double crystals = geometry.crystal_count();
    const double steps = crystals * crystals / 2 * (double{1} * grid.n[0] + grid.n[1] + grid.n[2]);
    return steps <= most_steps_of_sums && grid.voxels() <= most_voxels_of_sums;
}

std::vector<float> sum_of_lines(const corrections::LineFactors& factors, const config::Scanner& scanner,
                                const Grid& grid, const gpu::PairRule& rule, const OfPair& chance,
                                gpu::WorkerPool& pool) {
    const std::uint32_t crystals = scanner.geometry.crystal_count();
    const std::vector<Point> points = points_of(factors.ends());
    const Box box = Box::of(grid);
    const double scale = weight_scale(scanner.dimensions, grid);
    // Each share of the lines has sums of its own, which are added in a fixed order.
    std::array<std::vector<double>, shares> sums;
    for_each_on(pool, shares, [&](std::size_t share) {
        std::vector<double>& sum = sums[share];
        sum.resize(grid.voxels());
        for (auto a = static_cast<std::uint32_t>(share); a < crystals; a += shares) {
            for (std::uint32_t b = a + 1; b < crystals; ++b) {
                if (!rule.good(a, b)) continue;
                const Ray ray(box, points[a], points[b]);
                if (ray.cells() == 0) continue;
                const double weight = factors.solid_angle(a, b, scale) * (chance ? chance({a, b}) : 1);
                if (!(weight > 0)) continue;
                ray.walk([&](std::uint32_t voxel, float mm) { sum[voxel] += weight * double{mm}; });
            }
        }
    });
    std::vector<float> out(grid.voxels());
    for (std::size_t voxel = 0; voxel < out.size(); ++voxel) {
        double sum = 0;
        for (const auto& share : sums)
            sum += share[voxel];
        out[voxel] = static_cast<float>(sum);
    }
    return out;
}

}  // namespace petacq::image
