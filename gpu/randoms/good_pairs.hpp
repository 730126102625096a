// Sums over all good pairs of crystals: what a rate adds up to that is a product of values of both crystals.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "config/geometry.hpp"
#include "gpu/randoms/pair_cells.hpp"
#include "gpu/randoms/pair_chances.hpp"
#include "gpu/rules/coincidence_rules.hpp"
#include "gpu/rules/pair_rule.hpp"

namespace petacq::gpu {

/// The values of each crystal, by kind of single.
struct CrystalValues {
    std::array<std::vector<double>, single_kinds> of;  ///< [kind][crystal]
};

/// Sums of r_ij, the sum of c[x][y] v_i[x] v_j[y] over the kinds x and y, over good pairs of crystals i and
/// j. c depends on their cells.
struct PairProducts {
    std::vector<double> per_crystal;  ///< [crystal] each pair counts for both of its crystals
    /// [a * modules + b], modules around the ring: the pairs with one crystal in a and the other in b.
    /// Symmetric; each pair counts once, also within one module (a = b).
    std::vector<double> module_pairs;
    std::uint32_t modules = 0;
    double total = 0;  ///< each pair counts once: half of the sum over crystals

    /// Adds `factor` times the other, of the same scanner. Empty ones are zero.
    void add(const PairProducts& more, double factor);
};

/// Whether two crystals can pair depends on module and ring only, so sums over (module, ring) suffice. The
/// work grows with modules^2 * rings * zones + crystals: about a millisecond for 30,000 crystals in 16
/// modules around the ring, in one zone. Used by one thread at a time. The same input gives the same result,
/// bit for bit.
class GoodPairs {
  public:
    GoodPairs(const config::Geometry& geometry, const CoincidenceRules& rules);

    /// The values of the following calls; they must not change in between. Throws std::invalid_argument if
    /// their number is not that of the crystals.
    void use(const CrystalValues& values);
    /// `chances`: c [a * cells + b], of i in a and j in b.
    [[nodiscard]] double total(std::span<const PairChances> chances) const;
    void products(std::span<const PairChances> chances, PairProducts& out);
    /// [module around the ring] the part of the ends in it that come first, of pairs between modules; 1/2 if
    /// there are none.
    [[nodiscard]] std::vector<double> first_ends(std::span<const PairChances> chances) const;
    /// [a * modules + b] the same sum over the pairs of different crystals that are not good, one in module a
    /// around the ring and the other in b, with one c for all. Within a module each counts in both orders.
    [[nodiscard]] std::vector<double> refused(const PairChances::ByKinds& c) const;
    [[nodiscard]] const PairRule& rule() const { return rule_; }
    [[nodiscard]] const PairCells& cells() const { return cells_; }

  private:
    using Kinds = std::array<std::vector<double>, single_kinds>;

    [[nodiscard]] std::size_t crystal(std::uint32_t module, std::uint32_t ring) const {
        return std::size_t{ring} * rule_.crystals_in_ring + std::size_t{module} * rule_.crystals_per_module;
    }
    /// `v`: [row * rings + ring]
    [[nodiscard]] std::span<const double> rings_of(const std::vector<double>& v, std::uint32_t row) const {
        return std::span(v).subspan(std::size_t{row} * rings_, rings_);
    }
    [[nodiscard]] bool can_join(std::uint32_t cell_a, std::uint32_t cell_b) const {
        return rule_.modules_apart(cells_.module_of(cell_a), cells_.module_of(cell_b)) >=
               rule_.min_module_difference;
    }
    /// rates_: values by (module, ring); near_: for each ring, those of a cell within the ring difference.
    void sum_rates(std::size_t kind);
    /// Fills below_[ring] and above_[ring]: the values of a cell in the near rings on either side.
    void sum_neighbours(std::size_t kind, std::uint32_t cell);
    /// Fills inside_: what each crystal of the cell can pair with in its cell.
    void sum_inside(std::uint32_t cell);
    /// joined_ of two cells, and of one.
    void join(std::uint32_t a, std::uint32_t b);
    void join_inside(std::uint32_t cell);
    [[nodiscard]] double pairs_of(std::uint32_t a, std::uint32_t b,
                                  std::span<const PairChances> chances) const;
    /// Fills others_: what a crystal of the cell can pair with in other cells, weighted.
    void sum_others(std::uint32_t cell, std::span<const PairChances> chances);

    const PairCells cells_;
    const PairRule rule_;
    const std::uint32_t rings_;
    const std::uint32_t crystals_;
    const CrystalValues* values_ = nullptr;
    Kinds rates_;   ///< [kind][module * rings + ring]
    Kinds near_;    ///< [kind][cell * rings + ring]
    Kinds others_;  ///< [kind][ring]
    Kinds inside_;  ///< [kind][ring * crystals_per_module + place in it]
    /// [a * cells + b], a <= b: [x][y] the sum of v_i[x] v_j[y] over good pairs, i in a and j in b.
    std::vector<PairChances::ByKinds> joined_;
    std::vector<double> in_zone_;  ///< [ring] values of a cell; 0 outside its zone
    std::vector<double> below_;
    std::vector<double> above_;
    std::vector<double> reversed_;
    std::vector<double> scratch_;
};

}  // namespace petacq::gpu
