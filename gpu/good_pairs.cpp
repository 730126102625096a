#include "gpu/good_pairs.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "gpu/arithmetic.hpp"

namespace petacq::gpu {

namespace {

/// out[i] = in[i - width + 1] + ... + in[i], clipped to the range. It only adds: differences of running sums
/// would lose small rates beside large ones.
void trailing_sums(std::span<const double> in, std::size_t width, std::vector<double>& scratch,
                   std::span<double> out) {
    const std::size_t n = in.size();
    if (width == 0) {
        std::fill(out.begin(), out.end(), 0.0);
        return;
    }
    // In blocks of `width`, each window is the end of one block and the start of the next.
    scratch.resize(n);
    for (std::size_t i = n; i-- > 0;)
        scratch[i] = in[i] + (i + 1 < n && (i + 1) % width != 0 ? scratch[i + 1] : 0);
    double from_block = 0;
    for (std::size_t i = 0; i < n; ++i) {
        from_block = i % width == 0 ? in[i] : from_block + in[i];
        const bool whole_block = (i + 1) % width == 0;
        out[i] = from_block + (whole_block || i + 1 < width ? 0 : scratch[i + 1 - width]);
    }
}

}  // namespace

void PairProducts::add(const PairProducts& more, double factor) {
    const auto add = [&](std::vector<double>& to, const std::vector<double>& from) {
        to.resize(from.size());
        for (std::size_t i = 0; i < from.size(); ++i)
            to[i] += factor * from[i];
    };
    add(per_crystal, more.per_crystal);
    add(module_pairs, more.module_pairs);
    modules = more.modules;
    total += factor * more.total;
}

GoodPairs::GoodPairs(const config::Geometry& geometry, const CoincidenceRules& rules)
    : rule_(PairRule::of(geometry, rules)),
      rings_(geometry.rings()),
      crystals_(geometry.crystal_count()),
      cells_(std::size_t{rule_.modules} * rings_),
      near_(cells_.size()),
      others_(cells_.size()),
      below_(rings_),
      above_(rings_) {}

void GoodPairs::products(std::span<const double> values, PairProducts& out) {
    if (values.size() != crystals_) {
        throw std::invalid_argument("pairs of crystals: " + std::to_string(values.size()) +
                                    " values, expected one for each of " + std::to_string(crystals_) +
                                    " crystals");
    }
    out.modules = rule_.modules;
    out.per_crystal.assign(crystals_, 0);
    out.module_pairs.assign(std::size_t{rule_.modules} * rule_.modules, 0);
    sum_cells(values);
    join_modules(out);
    for (std::uint32_t module = 0; module < rule_.modules; ++module)
        finish_module(module, values, out);
    out.total = 0;
    for (std::uint32_t a = 0; a < rule_.modules; ++a) {
        for (std::uint32_t b = a; b < rule_.modules; ++b)
            out.total += out.module_pairs[std::size_t{a} * rule_.modules + b];
    }
}

void GoodPairs::sum_cells(std::span<const double> values) {
    std::fill(others_.begin(), others_.end(), 0.0);
    for (std::uint32_t module = 0; module < rule_.modules; ++module) {
        for (std::uint32_t ring = 0; ring < rings_; ++ring) {
            double sum = 0;
            for (const double value : values.subspan(crystal(module, ring), rule_.crystals_per_module))
                sum += value;
            cells_[std::size_t{module} * rings_ + ring] = sum;
        }
        sum_neighbours(module);
        double* const near = near_.data() + std::size_t{module} * rings_;
        for (std::uint32_t ring = 0; ring < rings_; ++ring)
            near[ring] = (below_[ring] + above_[ring]) + cells_[std::size_t{module} * rings_ + ring];
    }
}

void GoodPairs::sum_neighbours(std::uint32_t module) {
    const std::span<const double> cells = rings_of(cells_, module);
    const std::size_t width = std::min(rule_.max_ring_difference, rings_);
    trailing_sums(cells, width, scratch_, below_);
    reversed_.assign(cells.rbegin(), cells.rend());
    trailing_sums(reversed_, width, scratch_, above_);
    std::reverse(above_.begin(), above_.end());
    // Excludes the ring itself.
    std::rotate(below_.begin(), below_.end() - 1, below_.end());
    below_.front() = 0;
    std::rotate(above_.begin(), above_.begin() + 1, above_.end());
    above_.back() = 0;
}

void GoodPairs::join_modules(PairProducts& out) {
    for (std::uint32_t a = 0; a < rule_.modules; ++a) {
        for (std::uint32_t b = 0; b < rule_.modules; ++b) {
            const std::uint32_t straight = a > b ? a - b : b - a;
            const std::uint32_t apart = std::min(straight, rule_.modules - straight);
            if (a == b || apart < rule_.min_module_difference) continue;
            const std::span<const double> near = rings_of(near_, b);
            const std::span<const double> cells = rings_of(cells_, a);
            double* const others = others_.data() + std::size_t{a} * rings_;
            double pairs = 0;
            for (std::uint32_t ring = 0; ring < rings_; ++ring) {
                others[ring] += near[ring];
                pairs += cells[ring] * near[ring];
            }
            if (a > b) continue;
            out.module_pairs[std::size_t{a} * rule_.modules + b] = pairs;
            out.module_pairs[std::size_t{b} * rule_.modules + a] = pairs;
        }
    }
}

void GoodPairs::finish_module(std::uint32_t module, std::span<const double> values, PairProducts& out) {
    const bool pairs_inside = rule_.min_module_difference == 0;
    if (pairs_inside) sum_neighbours(module);
    const std::span<const double> others = rings_of(others_, module);
    const std::size_t count = rule_.crystals_per_module;
    scratch_.resize(count);
    double inside = 0;
    for (std::uint32_t ring = 0; ring < rings_; ++ring) {
        const std::span<const double> row = values.subspan(crystal(module, ring), count);
        double* const result = out.per_crystal.data() + crystal(module, ring);
        double after = 0;
        for (std::size_t y = count; pairs_inside && y-- > 0;) {
            scratch_[y] = after;
            after += row[y];
        }
        double before = 0;
        for (std::size_t y = 0; y < count; ++y) {
            // All near crystals of the module except the crystal itself.
            const double own = pairs_inside ? (before + scratch_[y]) + (below_[ring] + above_[ring]) : 0;
            before += row[y];
            inside += row[y] * own;
            result[y] = row[y] * (others[ring] + own);
        }
    }
    // Each pair was counted from both of its crystals.
    out.module_pairs[std::size_t{module} * (rule_.modules + 1)] = inside / 2;
}

}  // namespace petacq::gpu
