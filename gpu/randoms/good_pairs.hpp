// Sums over all good pairs of crystals: what a rate adds up to that is a product of values of both crystals.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "config/scanner/geometry.hpp"
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
    /// [a * modules + b], modules around the ring or sides of any scanner (PairSides): the pairs with one
    /// crystal in a and the other in b. Symmetric; each pair counts once, also within one (a = b).
    std::vector<double> module_pairs;
    std::uint32_t modules = 0;
    double total = 0;  ///< each pair counts once: half of the sum over crystals

    /// Adds `factor` times the other, of the same scanner. Empty ones are zero.
    void add(const PairProducts& more, double factor);
};

/// Whether two crystals can pair depends on side and ring only, or on their bins, so sums over these suffice
/// (pair_bins.hpp). The work grows with sides^2 * rings * zones + crystals: about a millisecond for 30,000
/// crystals in 16 modules around the ring, in one zone; with a field of view, with bins^2. Used by one thread
/// at a time. The same input gives the same result, bit for bit.
class GoodPairs {
  public:
    GoodPairs(const config::Geometry& geometry, const CoincidenceRules& rules);

    /// The values of the following calls; they must not change in between. Throws std::invalid_argument if
    /// their number is not that of the crystals.
    void use(const CrystalValues& values);
    /// [cell] the values of all kinds of the crystals in it.
    [[nodiscard]] std::vector<double> in_cells() const;
    /// `chances`: c [a * cells + b], of i in a and j in b.
    [[nodiscard]] double total(std::span<const PairChances> chances) const;
    /// The sum of |dt| over the same pairs, in ticks.
    [[nodiscard]] double abs_dt(std::span<const PairChances> chances) const;
    /// [a * cells + b] the same sum with c = 1 over the pairs of crystals of two cells, for each pair that
    /// there is of singles: how many pairs are good. No crystal pairs with itself.
    [[nodiscard]] std::vector<double> good_parts() const;
    void products(std::span<const PairChances> chances, PairProducts& out);
    /// [side] the part of the ends in it that come first, of pairs between sides; 1/2 if there are none.
    [[nodiscard]] std::vector<double> first_ends(std::span<const PairChances> chances) const;
    /// [a * sides + b] the same sum over the pairs of different crystals that are not good, one in side a and
    /// the other in b, with one c for all. Within a side each counts in both orders.
    [[nodiscard]] std::vector<double> refused(const PairChances::ByKinds& c) const;
    [[nodiscard]] const PairRule& rule() const { return cells_.rule; }
    [[nodiscard]] const PairCells& cells() const { return cells_; }

  private:
    using Kinds = std::array<std::vector<double>, single_kinds>;

    [[nodiscard]] bool can_join(std::uint32_t cell_a, std::uint32_t cell_b) const {
        return cells_.can_join(cells_.side_of(cell_a), cells_.side_of(cell_b));
    }
    /// The sum of the values in a cell with which a crystal of this bin can pair. It includes the crystal
    /// itself.
    [[nodiscard]] double near(std::size_t kind, std::uint32_t bin, std::uint32_t cell) const {
        return bins_.weighted() ? near_[kind][std::size_t{bin} * cells_.count() + cell]
                                : near_[kind][std::size_t{cell} * bins_.rows() + bins_.row_of(bin)];
    }
    /// rates_ and near_.
    void sum_rates(std::size_t kind);
    /// Fills below_[row] and above_[row]: the values of a cell in the near rows on either side.
    void sum_neighbours(std::size_t kind, std::uint32_t cell);
    /// The values of other bins of its cell that a crystal of this bin can pair with. REQUIRES:
    /// sum_neighbours() of this cell, unless bins are weighted.
    [[nodiscard]] double near_in_cell(std::size_t kind, std::uint32_t bin, std::uint32_t cell) const;
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
    const PairBins& bins_;
    const std::uint32_t crystals_;
    const CrystalValues* values_ = nullptr;
    Kinds rates_;   ///< [kind][bin]
    Kinds near_;    ///< near(): [kind][cell * rows + row], or [kind][bin * cells + cell] if weighted
    Kinds others_;  ///< [kind][bin]
    Kinds inside_;  ///< [kind][place of the crystal among all, bin by bin]
    /// [a * cells + b], a <= b: [x][y] the sum of v_i[x] v_j[y] over good pairs, i in a and j in b.
    std::vector<PairChances::ByKinds> joined_;
    std::vector<PairChances::ByKinds> own_;  ///< [side][x][y] the sum of v_i[x] v_i[y]
    std::vector<double> in_zone_;            ///< [row] values of a cell; 0 outside its zone
    std::vector<double> below_;
    std::vector<double> above_;
    std::vector<double> reversed_;
    std::vector<double> scratch_;
};

}  // namespace petacq::gpu
