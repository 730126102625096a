#include "tools/petlm/reconstruction/em/sensitivity.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>

#include "tools/geometry/hit_finder.hpp"
#include "tools/petlm/reconstruction/em/line_sums.hpp"
#include "tools/petlm/reconstruction/projector/for_each_on.hpp"

namespace petacq::image {
namespace {

constexpr std::size_t rays = 1024;
constexpr std::size_t spaces = 16;  // between nodes, along an axis
constexpr double golden_share = 0.6180339887498949;

/// The radius of the part of the bore that has values.
double inside_of(const config::Scanner& scanner) {
    return 0.99 * scanner.dimensions.ring_radius_mm;
}

/// A direction, and a place in a cell with coordinates from -1/2 to 1/2.
struct Direction {
    config::Vector3 direction;
    config::Vector3 place;
};

/// Directions even over the half sphere of positive z (a Fibonacci lattice), places even over the cell
/// (Roberts' additive sequence for three dimensions).
std::vector<Direction> even_directions() {
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

/// Nodes along an axis, evenly from the first to the last voxel.
class Nodes {
  public:
    Nodes(const Grid& grid, std::size_t axis) {
        const double last = (grid.n[axis] - 1) / 2.0;  // voxels from the middle
        const std::size_t gaps = std::min<std::size_t>(spaces, grid.n[axis] - 1);
        width_ = gaps > 0 ? 2 * last / static_cast<double>(gaps) * grid.voxel_mm : grid.voxel_mm;
        for (std::size_t i = 0; i <= gaps; ++i)
            at_.push_back(-last * grid.voxel_mm + static_cast<double>(i) * width_);
        for (std::size_t voxel = 0; voxel < grid.n[axis]; ++voxel) {
            const double place = (grid.centre(axis, voxel) - at_[0]) / width_;
            const auto below = std::min(static_cast<std::size_t>(std::max(place, 0.0)), gaps);
            below_.push_back(below);
            share_.push_back(static_cast<float>(place - static_cast<double>(below)));
        }
    }
    [[nodiscard]] std::size_t count() const { return at_.size(); }
    [[nodiscard]] double in_cell(std::size_t node, double place) const { return at_[node] + place * width_; }
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
    double width_;                    // mm, of the cell of a node
    std::vector<std::size_t> below_;  // [voxel]
    std::vector<float> share_;        // [voxel]
};

/// [voxel] The mean chance of a pair whose photons meet crystals, weighted with `weight`. Zero outside the
/// bore.
std::vector<float> mean_chance(const config::Scanner& scanner, const gpu::PairRule& rule, const Grid& grid,
                               net::WorkerPool& pool, const FactorOfRay& weight, const FactorOfRay& chance) {
    const geometry::HitFinder finder(scanner);
    const auto all_directions = even_directions();
    const Nodes x(grid, 0);
    const Nodes y(grid, 1);
    const Nodes z(grid, 2);
    const double inside = inside_of(scanner);
    std::vector<float> nodes(x.count() * y.count() * z.count());
    for_each_on(pool, nodes.size(), [&](std::size_t index) {
        const std::size_t i = index % x.count();
        const std::size_t j = index / x.count() % y.count();
        const std::size_t k = index / x.count() / y.count();
        double found = 0;
        double all = 0;
        // Each node has directions of its own, so that their errors do not add up along the axis.
        const double turn = 2 * std::numbers::pi * std::fmod(golden_share * static_cast<double>(index), 1.0);
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
            Entrance ends[2] = {{a->crystal, from}, {b->crystal, from}};  // NOLINT(modernize-avoid-c-arrays)
            for (std::size_t axis = 0; axis < 3; ++axis) {
                ends[0].at[axis] += a->distance_mm * u[axis];
                ends[1].at[axis] -= b->distance_mm * u[axis];
            }
            const double share = weight(ends[0], ends[1]);
            all += share;
            found += share * chance(ends[0], ends[1]);
        }
        nodes[index] = static_cast<float>(all > 0 ? found / all : 0);
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

std::vector<float> sensitivity_of(const corrections::LineFactors& lines, const config::Scanner& scanner,
                                  const gpu::PairRule& rule, const Grid& grid, const OfPair& chance,
                                  const FactorOfRay& of_ray, net::WorkerPool& pool) {
    if (few_lines(lines, grid)) return sum_of_lines(lines, grid, rule, chance, pool);
    if (!scanner.geometry.is_ring()) return sampled_sum_of_lines(lines, grid, rule, chance, pool);
    return sensitivity(lines, scanner, rule, grid, pool, of_ray);
}

std::vector<float> sensitivity(const corrections::LineFactors& lines, const config::Scanner& scanner,
                               const gpu::PairRule& rule, const Grid& grid, net::WorkerPool& pool,
                               const FactorOfRay& chance) {
    std::vector<float> out = even_sum_of_lines(lines, scanner, grid, rule, pool);
    config::Scanner of_ends = scanner;
    of_ends.dimensions.ring_radius_mm += lines.depth().typical_mm();
    for (std::size_t voxel = 0; voxel < out.size(); ++voxel) {
        const std::size_t column = voxel % (std::size_t{grid.n[0]} * grid.n[1]);
        const double radius =
            std::hypot(grid.centre(0, column % grid.n[0]), grid.centre(1, column / grid.n[0]));
        if (radius >= inside_of(of_ends)) out[voxel] = 0;
    }
    if (!chance) return out;
    const std::vector<float> mean = mean_chance(
        of_ends, rule, grid, pool,
        [&](const Entrance& a, const Entrance& b) { return lines.face_share(a.crystal, b.crystal); }, chance);
    for (std::size_t voxel = 0; voxel < out.size(); ++voxel)
        out[voxel] *= mean[voxel];
    return out;
}

}  // namespace petacq::image
