#include "gpu/randoms.hpp"

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

class HostRandoms final : public RandomsEstimator {
  public:
    HostRandoms(const config::Geometry& geometry, const CoincidenceRules& rules, double tick_s)
        : rule_(PairRule::of(geometry, rules)),
          rings_(geometry.rings()),
          crystals_(geometry.crystal_count()),
          both_ways_s_(2 * randoms_window_s(rules, tick_s)),
          cells_(std::size_t{rule_.modules} * rings_),
          near_(cells_.size()),
          others_(cells_.size()),
          below_(rings_),
          above_(rings_) {}

    void estimate(std::span<const double> singles_per_s, ExpectedRandoms& out) override {
        if (singles_per_s.size() != crystals_) {
            throw std::invalid_argument("expected randoms: " + std::to_string(singles_per_s.size()) +
                                        " rates, expected one for each of " + std::to_string(crystals_) +
                                        " crystals");
        }
        out.modules = rule_.modules;
        out.per_crystal.assign(crystals_, 0);
        out.module_pairs.assign(std::size_t{rule_.modules} * rule_.modules, 0);
        sum_cells(singles_per_s);
        join_modules(out);
        for (std::uint32_t module = 0; module < rule_.modules; ++module)
            finish_module(module, singles_per_s, out);
        out.total = 0;
        for (std::uint32_t a = 0; a < rule_.modules; ++a) {
            for (std::uint32_t b = a; b < rule_.modules; ++b)
                out.total += out.module_pairs[std::size_t{a} * rule_.modules + b];
        }
    }

  private:
    [[nodiscard]] std::size_t crystal(std::uint32_t module, std::uint32_t ring) const {
        return std::size_t{ring} * rule_.crystals_in_ring + std::size_t{module} * rule_.crystals_per_module;
    }
    [[nodiscard]] std::span<const double> rings_of(const std::vector<double>& v, std::uint32_t module) const {
        return std::span(v).subspan(std::size_t{module} * rings_, rings_);
    }

    /// cells_: rates by (module, ring); near_: their sums within the ring difference.
    void sum_cells(std::span<const double> rates) {
        std::fill(others_.begin(), others_.end(), 0.0);
        for (std::uint32_t module = 0; module < rule_.modules; ++module) {
            for (std::uint32_t ring = 0; ring < rings_; ++ring) {
                double sum = 0;
                for (const double rate : rates.subspan(crystal(module, ring), rule_.crystals_per_module))
                    sum += rate;
                cells_[std::size_t{module} * rings_ + ring] = sum;
            }
            sum_neighbours(module);
            double* const near = near_.data() + std::size_t{module} * rings_;
            for (std::uint32_t ring = 0; ring < rings_; ++ring)
                near[ring] = (below_[ring] + above_[ring]) + cells_[std::size_t{module} * rings_ + ring];
        }
    }

    /// Fills below_[ring] and above_[ring]: the rates of a module in the near rings on either side.
    void sum_neighbours(std::uint32_t module) {
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

    /// Pairs between different modules. others_: the rate that a crystal can pair with in other modules.
    void join_modules(ExpectedRandoms& out) {
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
                out.module_pairs[std::size_t{a} * rule_.modules + b] = both_ways_s_ * pairs;
                out.module_pairs[std::size_t{b} * rule_.modules + a] = both_ways_s_ * pairs;
            }
        }
    }

    /// Pairs within the module, and the values of its crystals.
    void finish_module(std::uint32_t module, std::span<const double> rates, ExpectedRandoms& out) {
        const bool pairs_inside = rule_.min_module_difference == 0;
        if (pairs_inside) sum_neighbours(module);
        const std::span<const double> others = rings_of(others_, module);
        const std::size_t count = rule_.crystals_per_module;
        scratch_.resize(count);
        double inside = 0;
        for (std::uint32_t ring = 0; ring < rings_; ++ring) {
            const std::span<const double> row = rates.subspan(crystal(module, ring), count);
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
                result[y] = both_ways_s_ * row[y] * (others[ring] + own);
            }
        }
        // Each pair was counted from both of its crystals.
        out.module_pairs[std::size_t{module} * (rule_.modules + 1)] = both_ways_s_ * inside / 2;
    }

    const PairRule rule_;
    const std::uint32_t rings_;
    const std::uint32_t crystals_;
    const double both_ways_s_;
    std::vector<double> cells_;
    std::vector<double> near_;
    std::vector<double> others_;
    std::vector<double> below_;
    std::vector<double> above_;
    std::vector<double> reversed_;
    std::vector<double> scratch_;
};

}  // namespace

double randoms_window_s(const CoincidenceRules& rules, double tick_s) {
    return (static_cast<double>(rules.window) + 1) * tick_s;
}

std::unique_ptr<RandomsEstimator> make_host_randoms(const config::Geometry& geometry,
                                                    const CoincidenceRules& rules, double tick_s) {
    return std::make_unique<HostRandoms>(geometry, rules, tick_s);
}

}  // namespace petacq::gpu
