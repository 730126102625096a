#include "tools/petlm/em/sensitivity.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>

#include "tools/geometry/hit_finder.hpp"
#include "tools/petlm/projector/for_each_on.hpp"

namespace petacq::image {
namespace {

constexpr double golden_share = 0.6180339887498949;

/// A direction, and a place in a cell with coordinates from -1/2 to 1/2.
struct Direction {
    config::Vector3 direction;
    config::Vector3 place;
};

/// Directions even over the half sphere of positive z (a Fibonacci lattice), places even over the cell
/// (Roberts' additive sequence for three dimensions).
std::vector<Direction> even_directions(std::size_t rays) {
    const double golden = std::numbers::pi * (3 - std::sqrt(5.0));
    constexpr double plastic = 1.22074408460575947536;  // root of x^4 = x + 1
    std::vector<Direction> out;
    for (std::size_t i = 0; i < rays; ++i) {
        const auto number = static_cast<double>(i);
        const double z = (number + 0.5) / static_cast<double>(rays);
        const double across = std::sqrt(1 - z * z);
        Direction ray{{across * std::cos(golden * number), across * std::sin(golden * number), z}, {}};
        for (std::size_t axis = 0; axis < 3; ++axis) {
            const double step = std::pow(plastic, -1.0 - static_cast<double>(axis));
            ray.place[axis] = std::fmod(0.5 + step * number, 1.0) - 0.5;
        }
        out.push_back(ray);
    }
    return out;
}

/// Nodes along an axis, at the middles of voxels: at each voxel up to `dense` voxels from the middle of the
/// image, and about `coarse` more to its edge.
class Nodes {
  public:
    /// Folded: the two sides of the middle are equal, and only one has nodes.
    Nodes(const Grid& grid, std::size_t axis, double dense, std::size_t coarse, bool folded) {
        const double last = (grid.n[axis] - 1) / 2.0;  // voxels from the middle
        std::vector<double> from_middle;
        const double first = grid.n[axis] % 2 == 0 ? 0.5 : 0;
        while (first + static_cast<double>(from_middle.size()) < std::min(dense, last))
            from_middle.push_back(first + static_cast<double>(from_middle.size()));
        const double at = first + static_cast<double>(from_middle.size());
        const double step = std::max(1.0, std::ceil((last - at) / static_cast<double>(coarse)));
        for (std::size_t i = 0; at + static_cast<double>(i) * step < last; ++i)
            from_middle.push_back(at + static_cast<double>(i) * step);
        from_middle.push_back(last);
        for (const double voxels : from_middle) {
            at_.push_back(voxels * grid.voxel_mm);
            if (!folded && voxels > 0) at_.push_back(-voxels * grid.voxel_mm);
        }
        std::sort(at_.begin(), at_.end());
        for (std::size_t voxel = 0; voxel < grid.n[axis]; ++voxel) {
            const double mm = folded ? std::abs(grid.centre(axis, voxel)) : grid.centre(axis, voxel);
            const auto above = std::lower_bound(at_.begin(), at_.end(), mm - 1e-6 * grid.voxel_mm);
            const auto next = static_cast<std::size_t>(std::min(above, at_.end() - 1) - at_.begin());
            const std::size_t below = next == 0 ? 0 : next - 1;
            const double gap = at_[next] - at_[below];
            below_.push_back(below);
            share_.push_back(gap > 0 ? static_cast<float>((mm - at_[below]) / gap) : 0.0F);
        }
        // A cell ends half way between its node and the nearer neighbour.
        for (std::size_t i = 0; i < at_.size(); ++i) {
            double width = i + 1 < at_.size() ? at_[i + 1] - at_[i] : grid.voxel_mm;
            if (i > 0) width = std::min(width, at_[i] - at_[i - 1]);
            width_.push_back(i + 1 == at_.size() ? grid.voxel_mm : width);
        }
    }
    [[nodiscard]] std::size_t count() const { return at_.size(); }
    [[nodiscard]] double in_cell(std::size_t node, double place) const {
        return at_[node] + place * width_[node];
    }
    [[nodiscard]] double at(std::size_t node) const { return at_[node]; }

    /// The two nodes around a voxel, and its place between them: 0 at the lower one, 1 at the upper one.
    struct Between {
        std::size_t below;
        std::size_t above;
        float share;
    };
    [[nodiscard]] Between around(std::size_t voxel) const {
        return {below_[voxel], std::min(below_[voxel] + 1, at_.size() - 1), share_[voxel]};
    }

  private:
    std::vector<double> at_;          // [node] mm
    std::vector<double> width_;       // [node] mm, of its cell
    std::vector<std::size_t> below_;  // [voxel]
    std::vector<float> share_;        // [voxel]
};

/// `folded`: the factor of a pair is that of its mirror images, too, which saves most of the nodes.
std::vector<float> sum_of_rays(const config::Scanner& scanner, const gpu::PairRule& rule, const Grid& grid,
                               gpu::WorkerPool& pool, const FactorOfRay& factor, bool folded,
                               std::size_t rays) {
    const geometry::HitFinder finder(scanner);
    const auto all_directions = even_directions(rays);
    // Lines from a gap to the opposite gap all meet on the axis, so the sensitivity varies there. EM
    // amplifies such differences: every voxel near the axis has a node.
    constexpr double dense = 4;
    const bool even = scanner.geometry.modules_in_ring() % 2 == 0;
    const Nodes x(grid, 0, dense, 8, folded && even);
    const Nodes y(grid, 1, dense, 8, folded);
    const Nodes z(grid, 2, 0, 16, folded);
    const double inside = 0.99 * scanner.dimensions.ring_radius_mm;
    std::vector<float> nodes(x.count() * y.count() * z.count());
    for_each_on(pool, nodes.size(), [&](std::size_t index) {
        const std::size_t i = index % x.count();
        const std::size_t j = index / x.count() % y.count();
        const std::size_t k = index / x.count() / y.count();
        // No nodes far outside. Just outside they take the value at the wall, for interpolation.
        if (std::hypot(x.at(i), y.at(j)) > 1.2 * inside) return;
        double found = 0;
        // Without symmetry each node has directions of its own, so that their errors do not add up along the
        // axis.
        const double turn =
            folded ? 0 : 2 * std::numbers::pi * std::fmod(golden_share * static_cast<double>(index), 1.0);
        const double cosine = std::cos(turn);
        const double sine = std::sin(turn);
        for (const Direction& ray : all_directions) {
            config::Vector3 from = {x.in_cell(i, ray.place[0]), y.in_cell(j, ray.place[1]),
                                    z.in_cell(k, ray.place[2])};
            const double radius = std::hypot(from[0], from[1]);
            if (radius > inside) {
                from[0] *= inside / radius;
                from[1] *= inside / radius;
            }
            const auto& d = ray.direction;
            const config::Vector3 u = {cosine * d[0] - sine * d[1], sine * d[0] + cosine * d[1], d[2]};
            const auto a = finder.find(from, u);
            if (!a) continue;
            const auto b = finder.find(from, {-u[0], -u[1], -u[2]});
            if (!b || !rule.good(a->crystal, b->crystal)) continue;
            if (!factor) {
                ++found;
                continue;
            }
            Entrance ends[2] = {{a->crystal, from}, {b->crystal, from}};  // NOLINT(modernize-avoid-c-arrays)
            for (std::size_t axis = 0; axis < 3; ++axis) {
                ends[0].at[axis] += a->distance_mm * u[axis];
                ends[1].at[axis] -= b->distance_mm * u[axis];
            }
            found += factor(ends[0], ends[1]);
        }
        nodes[index] = static_cast<float>(found / static_cast<double>(rays));
    });

    std::vector<float> out(grid.voxels());
    for_each_on(pool, grid.n[2], [&](std::size_t plane) {
        const Nodes::Between c = z.around(plane);
        for (std::size_t row = 0; row < grid.n[1]; ++row) {
            const Nodes::Between b = y.around(row);
            for (std::size_t column = 0; column < grid.n[0]; ++column) {
                if (std::hypot(grid.centre(0, column), grid.centre(1, row)) >= inside) continue;
                const Nodes::Between a = x.around(column);
                const auto along_x = [&](std::size_t j, std::size_t k) {
                    const float* line = nodes.data() + (k * y.count() + j) * x.count();
                    return line[a.below] * (1 - a.share) + line[a.above] * a.share;
                };
                const auto in_plane = [&](std::size_t k) {
                    return along_x(b.below, k) * (1 - b.share) + along_x(b.above, k) * b.share;
                };
                out[(plane * grid.n[1] + row) * grid.n[0] + column] =
                    in_plane(c.below) * (1 - c.share) + in_plane(c.above) * c.share;
            }
        }
    });
    return out;
}

}  // namespace

std::vector<float> sensitivity(const corrections::LineFactors& lines, const config::Scanner& scanner,
                               const gpu::PairRule& rule, const Grid& grid, gpu::WorkerPool& pool,
                               const FactorOfRay& chance, std::size_t rays) {
    if (lines.depth_mm() == 0) return sum_of_rays(scanner, rule, grid, pool, chance, !chance, rays);
    config::Scanner of_ends = scanner;
    of_ends.dimensions.ring_radius_mm += lines.depth_mm();
    const auto factor = [&](const Entrance& a, const Entrance& b) {
        const double share = lines.face_share(a.crystal, b.crystal);
        return chance ? share * chance(a, b) : share;
    };
    return sum_of_rays(of_ends, rule, grid, pool, factor, !chance, rays);
}

}  // namespace petacq::image
