#include "tools/petlm/reconstruction/em/lines.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "config/mixed.hpp"

namespace petacq::image {
namespace {

constexpr std::size_t most_groups = 100'000'000;  // that are counted one by one
constexpr std::size_t most_modules = 512;         // among which the delayeds of a channel map are shared
constexpr double pairs_counted = 1e8;             // of crystals, to find how many are good

/// Number of pairs of rings, one from each of two rows of modules, that are at most `most` apart.
double ring_pairs(std::uint32_t row_a, std::uint32_t row_b, std::uint32_t rings, std::uint32_t most) {
    double pairs = 0;
    for (std::uint32_t a = row_a * rings; a < (row_a + 1) * rings; ++a) {
        for (std::uint32_t b = row_b * rings; b < (row_b + 1) * rings; ++b)
            pairs += (a > b ? a - b : b - a) <= most ? 1 : 0;
    }
    return pairs;
}

/// The indices first, first + step, ... of pairs, those of the same two columns of crystals (along the axis)
/// next to each other: seen along the axis, their lines are one, and cross the same voxels.
std::vector<std::uint32_t> by_columns(std::span<const Pair> pairs, std::size_t first, std::size_t step,
                                      const corrections::AxialColumns& columns) {
    const auto group = [&](Pair pair) {
        const std::uint32_t a = columns.of(pair.a);
        const std::uint32_t b = columns.of(pair.b);
        return std::size_t{std::min(a, b)} * columns.count() + std::max(a, b);
    };
    const std::size_t groups = std::size_t{columns.count()} * columns.count();
    if (groups > most_groups) {
        std::vector<std::uint32_t> out;
        for (std::size_t i = first; i < pairs.size(); i += step)
            out.push_back(static_cast<std::uint32_t>(i));
        std::stable_sort(out.begin(), out.end(),
                         [&](std::uint32_t i, std::uint32_t k) { return group(pairs[i]) < group(pairs[k]); });
        return out;
    }
    std::vector<std::uint32_t> next(groups + 1);  // [group] place, once added up
    for (std::size_t i = first; i < pairs.size(); i += step)
        ++next[group(pairs[i]) + 1];
    std::partial_sum(next.begin(), next.end(), next.begin());
    std::vector<std::uint32_t> out(next.back());
    for (std::size_t i = first; i < pairs.size(); i += step)
        out[next[group(pairs[i])]++] = static_cast<std::uint32_t>(i);
    return out;
}

}  // namespace

RandomsByModules::RandomsByModules(const config::Geometry& g, const gpu::PairRule& rule)
    : modules_(g.is_ring() ? std::size_t{g.modules_in_ring()} * g.modules.z
                           : std::min<std::size_t>(g.bdm_count, most_modules)),
      module_of_(g.crystal_count()),
      delayeds_(modules_ * modules_),
      good_pairs_(modules_ * modules_) {
    if (g.is_ring()) {
        use_ring(g, rule);
    } else {
        use_channel_map(g, rule);
    }
}

void RandomsByModules::use_ring(const config::Geometry& g, const gpu::PairRule& rule) {
    const std::uint32_t rings = g.blocks.z * g.crystals.z;  // in a module
    const std::uint32_t across = g.crystals_per_module_y();
    for (std::uint32_t crystal = 0; crystal < g.crystal_count(); ++crystal) {
        const std::uint32_t ring = crystal / g.crystals_in_ring();
        const std::uint32_t column = crystal % g.crystals_in_ring() / across;
        module_of_[crystal] = static_cast<std::uint16_t>(ring / rings * g.modules_in_ring() + column);
    }
    for (std::size_t m = 0; m < modules_; ++m) {
        for (std::size_t n = m; n < modules_; ++n) {
            const auto row_m = static_cast<std::uint32_t>(m / g.modules_in_ring());
            const auto row_n = static_cast<std::uint32_t>(n / g.modules_in_ring());
            const auto first = [&](std::size_t module, std::uint32_t row) {
                return row * rings * g.crystals_in_ring() +
                       static_cast<std::uint32_t>(module % g.modules_in_ring()) * across;
            };
            gpu::PairRule around = rule;
            around.max_ring_difference = UINT32_MAX;
            if (!around.geometry_good(first(m, row_m), first(n, row_n))) continue;
            const double ordered =
                ring_pairs(row_m, row_n, rings, rule.max_ring_difference) * across * across;
            // Within one module each pair was counted twice, and each crystal with itself.
            good_pairs_[cell(m, n)] = m == n ? (ordered - static_cast<double>(rings) * across) / 2 : ordered;
        }
    }
}

void RandomsByModules::use_channel_map(const config::Geometry& g, const gpu::PairRule& rule) {
    std::vector<std::vector<std::uint32_t>> crystals(modules_);
    for (std::uint32_t unit = 0; unit < g.unit_count(); ++unit) {
        const std::uint32_t bdm = unit / g.du_count;
        const std::size_t module = std::size_t{bdm} * modules_ / g.bdm_count;
        for (std::uint32_t local = 0; local < g.crystals_of_unit(unit); ++local) {
            const std::uint32_t crystal = g.crystal(bdm, unit % g.du_count, local);
            module_of_[crystal] = static_cast<std::uint16_t>(module);
            crystals[module].push_back(crystal);
        }
    }
    const auto most = static_cast<std::size_t>(pairs_counted / static_cast<double>(modules_ * modules_));
    for (std::size_t m = 0; m < modules_; ++m) {
        for (std::size_t n = m; n < modules_; ++n) {
            const std::size_t all = crystals[m].size() * crystals[n].size();
            const std::size_t count = std::min(all, most);
            std::size_t good = 0;
            for (std::size_t i = 0; i < count; ++i) {
                std::size_t a = i / crystals[n].size();
                std::size_t b = i % crystals[n].size();
                if (count < all) {
                    a = static_cast<std::size_t>(config::even_share(i, 0) *
                                                 static_cast<double>(crystals[m].size()));
                    b = static_cast<std::size_t>(config::even_share(i, 1) *
                                                 static_cast<double>(crystals[n].size()));
                }
                good += rule.good(crystals[m][a], crystals[n][b]) ? 1 : 0;
            }
            if (good == 0) continue;
            const double pairs =
                static_cast<double>(good) / static_cast<double>(count) * static_cast<double>(all);
            good_pairs_[cell(m, n)] = m == n ? pairs / 2 : pairs;
        }
    }
}

double RandomsByModules::expected(Pair pair) const {
    const std::size_t at = cell(module_of_[pair.a], module_of_[pair.b]);
    return good_pairs_[at] > 0 ? static_cast<double>(delayeds_[at]) / good_pairs_[at] : 0;
}

double weight_scale(const corrections::LineFactors& factors, const Grid& grid) {
    return factors.face_squared() / (2 * std::numbers::pi * std::pow(grid.voxel_mm, 3));
}

double share_of_scatter(const corrections::LineFactors& factors, Pair pair, const TofBins& tof,
                        std::int16_t bin) {
    const corrections::AttenuatingObject::Extent box = factors.object().extent();
    const auto [a, b] = factors.ends(pair.a, pair.b);
    const double across = std::hypot(b[0] - a[0], b[1] - a[1]);
    const double length = std::hypot(across, b[2] - a[2]);
    if (!(across > 0)) return tof.share_of_window(bin);
    // Seen along the axis, in a circle around the object.
    const double x = (box.low[0] + box.high[0]) / 2 - a[0];
    const double y = (box.low[1] + box.high[1]) / 2 - a[1];
    const double radius = std::max(box.high[0] - box.low[0], box.high[1] - box.low[1]) / 2;
    const double along = (x * (b[0] - a[0]) + y * (b[1] - a[1])) / across;
    const double beside = (x * (b[1] - a[1]) - y * (b[0] - a[0])) / across;
    const double half = std::sqrt(std::max(radius * radius - beside * beside, radius * radius / 4));
    const double middle_of_bin = length / 2 - bin * tof.bin_mm();
    const double middle = along * length / across - middle_of_bin;
    return tof.mean_chance(middle - half * length / across, middle + half * length / across);
}

double share_of_spurious(const corrections::LineFactors& factors, Pair pair, const TofBins& tof,
                         std::int16_t bin, const std::vector<config::Vector3>& places) {
    const auto [a, b] = factors.ends(pair.a, pair.b);
    double weights = 0;
    double sum = 0;
    double squares = 0;
    for (const config::Vector3& at : places) {
        const double to_a = std::hypot(at[0] - a[0], at[1] - a[1], at[2] - a[2]);
        const double to_b = std::hypot(at[0] - b[0], at[1] - b[1], at[2] - b[2]);
        const double weight = 1 / std::pow(std::max(to_a * to_b, 1e-6), 2);
        const double nearer_to_a = (to_b - to_a) / 2;
        weights += weight;
        sum += weight * nearer_to_a;
        squares += weight * nearer_to_a * nearer_to_a;
    }
    if (!(weights > 0)) return tof.share_of_window(bin);
    const double mean = sum / weights;
    const double half = std::sqrt(3 * std::max(0.0, squares / weights - mean * mean));
    const double place = mean - bin * tof.bin_mm();
    return tof.mean_chance(place - half, place + half);
}

Lines make_lines(const corrections::LineFactors& factors, const Grid& grid, const MeasuredPairs& counts,
                 const LineModel& model, std::size_t subsets) {
    const double scale = weight_scale(factors, grid);
    const std::size_t rows = counts.pairs.size();
    Lines lines;
    lines.tof = counts.tof;
    lines.pairs.reserve(rows);
    lines.prompts.reserve(rows);
    lines.additive.reserve(rows);
    lines.bins.reserve(counts.bins.size());
    for (std::size_t subset = 0; subset < subsets; ++subset) {
        lines.subset_start.push_back(lines.pairs.size());
        for (const std::uint32_t i : by_columns(counts.pairs, subset, subsets, factors.columns())) {
            const Pair pair = counts.pairs[i];
            const double factor = model.factor ? model.factor(pair) : 1;
            if (!(factor > 0)) continue;
            const double weight = factor * factors.solid_angle(pair.a, pair.b, scale);
            double background = model.background ? model.background(pair) : 0;
            double scatter = model.scatter ? model.scatter(pair) : 0;
            double spurious = model.spurious ? model.spurious(pair) : 0;
            if (lines.tof.used()) {
                const std::int16_t bin = counts.bins[i];
                lines.bins.push_back(bin);
                background *= lines.tof.share_of_window(bin);
                if (scatter > 0) scatter *= share_of_scatter(factors, pair, lines.tof, bin);
                if (spurious > 0) spurious *= share_of_spurious(factors, pair, lines.tof, bin, model.places);
            }
            lines.pairs.push_back(pair);
            lines.prompts.push_back(static_cast<float>(counts.counts[i]));
            lines.additive.push_back(static_cast<float>((background + scatter + spurious) / weight));
        }
    }
    lines.subset_start.push_back(lines.pairs.size());
    return lines;
}

}  // namespace petacq::image
