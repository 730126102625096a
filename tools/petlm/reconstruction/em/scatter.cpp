#include "tools/petlm/reconstruction/em/scatter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tools/petlm/reconstruction/em/line_sums.hpp"
#include "tools/petlm/reconstruction/em/mlem.hpp"
#include "tools/petlm/reconstruction/em/sensitivity.hpp"

namespace petacq::image {
namespace {

constexpr double voxel_mm = 3.5;  // or a little less
constexpr std::uint32_t iterations = 2;
constexpr std::size_t subsets = 8;
constexpr std::size_t max_lines = 400'000;

/// The whole bore, and the length of the scanner.
Grid bore(const config::Scanner& scanner) {
    const std::uint32_t last = scanner.geometry.crystal_count() - 1;
    const double length =
        2 * config::crystal_place(scanner, last).front_centre_mm[2] + scanner.dimensions.crystal_pitch_z_mm;
    const double width = 2 * scanner.dimensions.ring_radius_mm;
    Grid grid;
    grid.voxel_mm = width / std::ceil(width / voxel_mm);
    const auto voxels = [&](double mm) {
        return static_cast<std::uint32_t>(std::lround(mm / grid.voxel_mm));
    };
    grid.n = {voxels(width), voxels(width), std::max(1U, voxels(length))};
    return grid;
}

}  // namespace

Scatter::Scatter(ScatterData data, net::WorkerPool& pool) : data_(std::move(data)) {
    for (int round = 0; round < 2; ++round) {
        const corrections::Activity of_run = activity(pool);
        single_ = std::make_unique<corrections::SingleScatter>(data_.scanner, data_.lines.object(), of_run,
                                                               data_.window, pool);
    }
    corrections::ScatterTails tails(
        data_.scanner, data_.rule, data_.lines,
        [this](std::uint32_t a, std::uint32_t b) { return unscaled(a, b); }, data_.randoms, pool);
    for (std::size_t i = 0; i < data_.pairs.pairs().size(); ++i) {
        const Pair pair = data_.pairs.pairs()[i];
        if (data_.rule.good(pair.a, pair.b)) tails.add(pair.a, pair.b, data_.pairs.counts()[i]);
    }
    scale_ = tails.scale(data_.pairs.share());
    total_ = scale_ * tails.total();
}

corrections::Activity Scatter::activity(net::WorkerPool& pool) const {
    const Grid grid = bore(data_.scanner);
    LineModel model;
    model.factor = [this](Pair p) { return data_.found(p.a, p.b) * data_.lines.attenuation(p.a, p.b); };
    model.background = [this](Pair p) {
        return data_.randoms(p.a, p.b) + (single_ ? unscaled(p.a, p.b) : 0);
    };
    const std::vector<float> sensitive =
        few_lines(data_.scanner.geometry, grid)
            ? sum_of_lines(data_.lines, data_.scanner, grid, data_.rule, model.factor, pool)
            : sensitivity(data_.lines, data_.scanner, data_.rule, grid, pool,
                          [this](const Entrance& a, const Entrance& b) {
                              const double chance = data_.found(a.crystal, b.crystal);
                              return chance > 0 ? chance * data_.lines.attenuation(a.at, b.at) : 0;
                          });
    // A part of the lines is enough.
    const std::size_t one_in = data_.pairs.pairs().size() / max_lines + 1;
    std::vector<Pair> pairs;
    std::vector<std::uint32_t> counts;
    for (std::size_t i = 0; i < data_.pairs.pairs().size(); i += one_in) {
        pairs.push_back(data_.pairs.pairs()[i]);
        counts.push_back(data_.pairs.counts()[i]);
    }
    const Lines lines =
        make_lines(data_.lines, data_.scanner.dimensions, grid, {pairs, counts}, model, subsets);
    const std::vector<Point> points = points_of(data_.lines.ends());
    EmOptions options;
    options.iterations = iterations;
    options.share = data_.pairs.share() / static_cast<double>(one_in);
    const auto projector = make_host_projector(grid, points, pool);
    corrections::Activity out{grid, reconstruct(*projector, grid, lines, sensitive, pool, options).image};
    for (float& value : out.per_mm3)
        value /= static_cast<float>(std::pow(grid.voxel_mm, 3));
    return out;
}

double Scatter::share_of_prompts() const {
    return total_ * data_.pairs.share() / static_cast<double>(data_.pairs.prompts());
}

std::string Scatter::sentence() const {
    return fmt::format(
        "Scatter: {:.0f} expected, {:.3g} of the prompts, by a simulation of single scatter in the object "
        "for {:.4g} to "
        "{:.4g} keV and a resolution of {:.3g} %, multiplied by {:.3g} as the lines that miss the object "
        "tell.",
        total_, share_of_prompts(), data_.window.lower, data_.window.upper, 100 * data_.window.resolution,
        scale_);
}

}  // namespace petacq::image
