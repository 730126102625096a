#include "tools/petlm/reconstruction/em/line_sums.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>

#include "config/mixed.hpp"
#include "tools/petlm/reconstruction/projector/for_each_on.hpp"
#include "tools/petlm/reconstruction/projector/trace.hpp"

namespace petacq::image {
namespace {

constexpr std::size_t shares = 8;
constexpr std::size_t max_voxels_of_sums = std::size_t{1} << 21U;  // 128 MiB for all shares
constexpr std::size_t max_values_of_sums = std::size_t{1} << 26U;  // 256 MiB for the parts of a sample
constexpr double max_steps_of_sums = 3e9;
constexpr double lines_through_voxel = 2000;     // of an even sample, before its mirror images
constexpr double sampled_through_voxel = 4000;   // of one that has no mirror images
constexpr std::uint64_t first_sample = 100'000;  // tells which share of the pairs has a line in the grid
constexpr std::uint64_t most_drawn = 4'000'000'000;

/// Turns and mirror images that map crystals to crystals and voxels to voxels: quarters or halves of a turn,
/// as the modules allow, mirror images of them, and of all these along the axis.
class Symmetries {
  public:
    Symmetries(const config::Geometry& geometry, const Grid& grid)
        : geometry_(geometry),
          grid_(grid),
          turns_(geometry.modules_in_ring() % 4 == 0   ? 4
                 : geometry.modules_in_ring() % 2 == 0 ? 2
                                                       : 1) {}
    [[nodiscard]] unsigned count() const { return 4 * turns_; }

    [[nodiscard]] std::uint32_t of_crystal(unsigned symmetry, std::uint32_t crystal) const {
        const std::uint32_t in_ring = geometry_.crystals_in_ring();
        const std::uint32_t columns = geometry_.crystals_per_module_y();
        const std::uint32_t modules = geometry_.modules_in_ring();
        std::uint32_t ring = crystal / in_ring;
        std::uint32_t module = crystal % in_ring / columns;
        std::uint32_t column = crystal % columns;
        if ((symmetry & 1U) != 0) ring = geometry_.rings() - 1 - ring;
        if ((symmetry & 2U) != 0) {
            module = (modules - module) % modules;
            column = columns - 1 - column;
        }
        module = (module + symmetry / 4 * (modules / turns_)) % modules;
        return (ring * modules + module) * columns + column;
    }
    [[nodiscard]] std::size_t of_voxel(unsigned symmetry, std::uint32_t x, std::uint32_t y,
                                       std::uint32_t z) const {
        if ((symmetry & 1U) != 0) z = grid_.n[2] - 1 - z;
        if ((symmetry & 2U) != 0) y = grid_.n[1] - 1 - y;
        for (unsigned turn = 0; turn < symmetry / 4; ++turn) {
            if (turns_ == 2) {
                x = grid_.n[0] - 1 - x;
                y = grid_.n[1] - 1 - y;
            } else {
                const std::uint32_t before = x;
                x = grid_.n[0] - 1 - y;
                y = before;
            }
        }
        return (std::size_t{z} * grid_.n[1] + y) * grid_.n[0] + x;
    }

  private:
    const config::Geometry& geometry_;
    const Grid& grid_;
    unsigned turns_;
};

bool meet(const Box& box, const LinesOfPair& lines) {
    bool any = false;
    lines.each([&](const Line& line, float) { any = any || Ray(box, line.from, line.to).slabs() != 0; });
    return any;
}

}  // namespace

bool few_lines(const corrections::LineFactors& factors, const Grid& grid) {
    const double crystals = factors.crystals();
    const double steps =
        crystals * crystals / 2 * factors.angles() * (double{1} * grid.n[0] + grid.n[1] + grid.n[2]);
    return steps <= max_steps_of_sums && grid.voxels() <= max_voxels_of_sums;
}

std::vector<float> sum_of_lines(const corrections::LineFactors& factors, const Grid& grid,
                                const gpu::PairRule& rule, const OfPair& chance, net::WorkerPool& pool) {
    const std::uint32_t crystals = factors.crystals();
    const std::uint32_t numbers = crystals * factors.angles();
    const Box box = Box::of(grid);
    const double scale = weight_scale(factors, grid);
    // Each share of the lines has sums of its own, which are added in a fixed order.
    std::array<std::vector<double>, shares> sums;
    for_each_on(pool, shares, [&](std::size_t share) {
        std::vector<double>& sum = sums[share];
        sum.resize(grid.voxels());
        Trace trace(box);
        for (auto a = static_cast<std::uint32_t>(share); a < numbers; a += shares) {
            const std::uint32_t end = (a / crystals + 1) * crystals;  // of its angle
            for (std::uint32_t b = a + 1; b < end; ++b) {
                if (!rule.good(factors.crystal(a), factors.crystal(b))) continue;
                const LinesOfPair lines = lines_of(factors.geometry(), {a, b}, grid.voxel_mm);
                if (!meet(box, lines)) continue;
                const double weight = factors.solid_angle(a, b, scale) * (chance ? chance({a, b}) : 1);
                if (!(weight > 0)) continue;
                trace.follow(box, lines);
                trace.each([&](std::size_t voxel, float mm) { sum[voxel] += weight * double{mm}; });
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

std::vector<float> sampled_sum_of_lines(const corrections::LineFactors& factors, const Grid& grid,
                                        const gpu::PairRule& rule, const OfPair& chance,
                                        net::WorkerPool& pool) {
    const std::size_t crystals = factors.crystals();
    const std::size_t angles = factors.angles();
    const Box box = Box::of(grid);
    // Pair i of the sample in both orders; the line of a pair that is not good, or has none in the grid, is
    // empty.
    const auto draw = [&](std::uint64_t i) {
        const std::size_t first = angles > 1 ? config::mixed(i) % angles * crystals : 0;
        const auto crystal = [&](int which) {
            const double place = config::even_share(i, which) * static_cast<double>(crystals);
            return static_cast<std::uint32_t>(first + static_cast<std::size_t>(place));
        };
        return Pair{crystal(0), crystal(1)};
    };
    const auto counts = [&](Pair pair) {
        return rule.good(factors.crystal(pair.a), factors.crystal(pair.b)) &&
               meet(box, lines_of(factors.geometry(), pair, grid.voxel_mm));
    };
    std::vector<std::uint64_t> met(shares);
    for_each_on(pool, shares, [&](std::size_t share) {
        for (std::uint64_t i = share; i < first_sample; i += shares)
            met[share] += counts(draw(i)) ? 1 : 0;
    });
    const double of_first = static_cast<double>(std::accumulate(met.begin(), met.end(), std::uint64_t{0}));
    const double steps = (grid.n[0] + grid.n[1] + grid.n[2]) / 3.0;
    const double wanted = sampled_through_voxel * static_cast<double>(grid.voxels()) / steps;
    const auto drawn = static_cast<std::uint64_t>(
        std::min(wanted * static_cast<double>(first_sample) / std::max(of_first, 1.0),
                 static_cast<double>(most_drawn)));
    const bool all = drawn / crystals / angles >= crystals;
    const std::uint64_t pairs = crystals * crystals;
    const std::uint64_t count = all ? pairs * angles : drawn;
    // Each pair occurs in both orders.
    const double scale =
        weight_scale(factors, grid) * static_cast<double>(pairs * angles) / static_cast<double>(count) / 2;
    const std::size_t parts = std::clamp<std::size_t>(max_values_of_sums / grid.voxels(), 4, 32);
    std::vector<std::vector<float>> sums(parts);
    for_each_on(pool, parts, [&](std::size_t part) {
        std::vector<float>& sum = sums[part];
        sum.resize(grid.voxels());
        Trace trace(box);
        for (std::uint64_t i = part; i < count; i += parts) {
            const std::uint64_t first = i / pairs * crystals;  // of its angle
            const Pair pair = all ? Pair{static_cast<std::uint32_t>(first + i % pairs / crystals),
                                         static_cast<std::uint32_t>(first + i % crystals)}
                                  : draw(i);
            if (!counts(pair)) continue;
            const auto weight =
                static_cast<float>(factors.solid_angle(pair.a, pair.b, scale) * (chance ? chance(pair) : 1));
            if (!(weight > 0)) continue;
            trace.follow(box, lines_of(factors.geometry(), pair, grid.voxel_mm));
            trace.each([&](std::size_t voxel, float mm) { sum[voxel] += weight * mm; });
        }
    });
    for (std::size_t part = 1; part < parts; ++part) {
        for (std::size_t voxel = 0; voxel < grid.voxels(); ++voxel)
            sums[0][voxel] += sums[part][voxel];
    }
    return std::move(sums[0]);
}

std::vector<float> even_sum_of_lines(const corrections::LineFactors& factors, const config::Scanner& scanner,
                                     const Grid& grid, const gpu::PairRule& rule, net::WorkerPool& pool) {
    const std::uint64_t crystals = scanner.geometry.crystal_count();
    const std::uint32_t rings = scanner.geometry.rings();
    const std::uint32_t in_ring = scanner.geometry.crystals_in_ring();
    const Symmetries symmetries(scanner.geometry, grid);
    // One crystal stands for all those that are its images.
    struct First {
        std::uint32_t crystal;
        double images;
    };
    std::vector<First> first;
    for (std::uint32_t crystal = 0; crystal < crystals; ++crystal) {
        unsigned same = 0;
        std::uint32_t lowest = crystal;
        for (unsigned i = 0; i < symmetries.count(); ++i) {
            const std::uint32_t image = symmetries.of_crystal(i, crystal);
            same += image == crystal ? 1 : 0;
            lowest = std::min(lowest, image);
        }
        if (lowest == crystal) first.push_back({crystal, static_cast<double>(symmetries.count()) / same});
    }
    const double steps = (grid.n[0] + grid.n[1] + grid.n[2]) / 3.0;
    const double wanted = lines_through_voxel * static_cast<double>(grid.voxels()) / steps;
    std::uint64_t one_in = 1;
    while (static_cast<double>(first.size() * crystals) / static_cast<double>(one_in) > wanted)
        one_in *= 2;

    const Box box = Box::of(grid);
    // Every line is met from both of its ends.
    const double scale =
        weight_scale(factors, grid) * static_cast<double>(one_in) / (2.0 * symmetries.count());
    const std::size_t parts = grid.voxels() <= max_voxels_of_sums ? shares : 1;
    std::vector<std::vector<float>> sums(parts);
    for_each_on(pool, parts, [&](std::size_t part) {
        std::vector<float>& sum = sums[part];
        sum.resize(grid.voxels());
        Trace trace(box);
        for (std::size_t i = part; i < first.size(); i += parts) {
            const std::uint32_t a = first[i].crystal;
            // Column by column of crystals, whose lines cross the same voxels.
            for (std::uint32_t place = 0; place < crystals; ++place) {
                const std::uint32_t b = place % rings * in_ring + place / rings;
                if (one_in > 1 && (config::mixed(a * crystals + b) & (one_in - 1)) != 0) continue;
                if (a == b || !rule.good(a, b)) continue;
                const LinesOfPair lines = lines_of(factors.geometry(), {a, b}, grid.voxel_mm);
                if (!meet(box, lines)) continue;
                const auto weight = static_cast<float>(factors.solid_angle(a, b, scale) * first[i].images);
                trace.follow(box, lines);
                trace.each([&](std::size_t voxel, float mm) { sum[voxel] += weight * mm; });
            }
        }
    });
    for (std::size_t part = 1; part < parts; ++part) {
        for (std::size_t voxel = 0; voxel < grid.voxels(); ++voxel)
            sums[0][voxel] += sums[part][voxel];
    }
    std::vector<float> out(grid.voxels());
    for_each_on(pool, grid.n[2], [&](std::size_t plane) {
        const auto z = static_cast<std::uint32_t>(plane);
        for (std::uint32_t y = 0; y < grid.n[1]; ++y) {
            for (std::uint32_t x = 0; x < grid.n[0]; ++x) {
                float sum = 0;
                for (unsigned i = 0; i < symmetries.count(); ++i)
                    sum += sums[0][symmetries.of_voxel(i, x, y, z)];
                out[(plane * grid.n[1] + y) * grid.n[0] + x] = sum;
            }
        }
    });
    return out;
}

}  // namespace petacq::image
