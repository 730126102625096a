// Sums of products over all good pairs of crystals: what a rate that is proportional to the product of a
// value of each crystal adds up to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "config/geometry.hpp"
#include "gpu/arithmetic.hpp"
#include "gpu/coincidence_rules.hpp"

namespace petacq::gpu {

/// With a value x of each crystal.
struct PairProducts {
    /// [crystal] x_i sum x_j over the crystals j that form a good pair with i. Each pair counts for both of
    /// its crystals.
    std::vector<double> per_crystal;
    /// [a * modules + b], modules around the ring: the sum of x_i x_j over good pairs with one crystal in a
    /// and the other in b. Symmetric; each pair counts once, also within one module (a = b).
    std::vector<double> module_pairs;
    std::uint32_t modules = 0;
    /// Over all good pairs, each counted once: half of the sum over crystals.
    double total = 0;

    /// Adds `factor` times the other, of the same scanner. Empty ones are zero.
    void add(const PairProducts& more, double factor);
};

/// Whether two crystals can pair depends on module and ring only, so sums over (module, ring) suffice. The
/// work grows with modules^2 * rings + crystals and takes well below a millisecond. Used by one thread at a
/// time. The same input gives the same result, bit for bit.
class GoodPairs {
  public:
    GoodPairs(const config::Geometry& geometry, const CoincidenceRules& rules);

    /// `values`: [crystal]. Throws std::invalid_argument if their number is not that of the crystals.
    void products(std::span<const double> values, PairProducts& out);
    [[nodiscard]] const PairRule& rule() const { return rule_; }

  private:
    [[nodiscard]] std::size_t crystal(std::uint32_t module, std::uint32_t ring) const {
        return std::size_t{ring} * rule_.crystals_in_ring + std::size_t{module} * rule_.crystals_per_module;
    }
    [[nodiscard]] std::span<const double> rings_of(const std::vector<double>& v, std::uint32_t module) const {
        return std::span(v).subspan(std::size_t{module} * rings_, rings_);
    }
    /// cells_: values by (module, ring); near_: their sums within the ring difference.
    void sum_cells(std::span<const double> values);
    /// Fills below_[ring] and above_[ring]: the values of a module in the near rings on either side.
    void sum_neighbours(std::uint32_t module);
    /// Pairs between different modules. others_: what a crystal can pair with in other modules.
    void join_modules(PairProducts& out);
    /// Pairs within the module, and the values of its crystals.
    void finish_module(std::uint32_t module, std::span<const double> values, PairProducts& out);

    const PairRule rule_;
    const std::uint32_t rings_;
    const std::uint32_t crystals_;
    std::vector<double> cells_;
    std::vector<double> near_;
    std::vector<double> others_;
    std::vector<double> below_;
    std::vector<double> above_;
    std::vector<double> reversed_;
    std::vector<double> scratch_;
};

}  // namespace petacq::gpu
