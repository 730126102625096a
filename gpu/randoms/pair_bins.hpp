// Crystals that make good pairs with the same others, and which of these.
//
// In a ring of the short form a bin has the crystals of a module around the ring within one ring. In the long
// form, without a field of view, it has those of a side at one place along the axis. A field of view tells
// apart every column of crystals, so there neighbouring columns share a bin if they are many, and two bins
// have a weight: the part of their pairs that is good. Sums are then
// off by what rates vary within a bin where the field of view ends; docs/design/randoms.md has figures.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "config/scanner/geometry.hpp"
#include "gpu/rules/pair_rule.hpp"

namespace petacq::gpu {

/// Modules that face alike and pair with the same others: of a ring, those at one place around it; in the
/// long form, groups of modules, or parts of these in one direction from the axis.
struct PairSides {
    std::uint32_t count = 1;
    std::vector<std::uint32_t> of_crystal;  ///< empty for a ring, where it follows from the rule
    std::vector<std::uint8_t> can_join;     ///< [a * count + b] whether some of their pairs may be good
    std::vector<std::uint8_t>
        opposite;  ///< [a * count + b] at least a third of the way around from each other

    /// [a * count + b] how far from the axis the line between their middles passes, less than `distances`.
    std::vector<std::uint8_t> distance;

    static constexpr std::uint32_t distances = 12;
    static constexpr std::uint32_t most = 200;

    static PairSides of(const config::Geometry& geometry, const PairRule& rule);
};

/// Immutable once built, so threads may share it.
class PairBins {
  public:
    /// Limits of the long form: bins with a weight for each pair of them, and places along the axis that have
    /// a row of their own.
    static constexpr std::uint32_t max_weighted = 1024;
    static constexpr std::uint32_t max_rows = 1024;

    /// `zones`: each side is divided along the axis into so many cells of about equally many rows.
    PairBins(const config::Geometry& geometry, const PairRule& rule, const PairSides& sides,
             std::uint32_t zones);

    [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(row_.size()); }
    [[nodiscard]] std::uint32_t rows() const {
        return rows_;
    }  ///< places along the axis; of a ring, its rings
    [[nodiscard]] std::uint32_t row_of(std::uint32_t bin) const { return row_[bin]; }
    [[nodiscard]] std::span<const std::uint32_t> crystals_of(std::uint32_t bin) const {
        return std::span(order_).subspan(first_[bin], first_[bin + 1] - first_[bin]);
    }
    /// Where its crystals begin among all, bin by bin.
    [[nodiscard]] std::uint32_t first_of(std::uint32_t bin) const { return first_[bin]; }
    /// The bins of a cell, side * zones + zone: from here to the first of the next cell.
    [[nodiscard]] std::uint32_t first_bin(std::uint32_t cell) const { return first_bin_[cell]; }
    [[nodiscard]] std::uint32_t cell_of_crystal(std::uint32_t crystal) const { return cell_of_[crystal]; }

    /// Whether any two bins have a weight of their own. Otherwise it is that of their sides times that of
    /// their rows.
    [[nodiscard]] bool weighted() const { return !weights_.empty(); }
    /// REQUIRES: weighted().
    [[nodiscard]] std::span<const float> weights_of(std::uint32_t bin) const {
        return std::span(weights_).subspan(std::size_t{bin} * count(), count());
    }
    /// [row]; empty in a ring, where rows up to the largest difference of rings pair.
    [[nodiscard]] std::span<const double> near_rows(std::uint32_t row) const {
        return std::span(near_rows_)
            .subspan(near_rows_.empty() ? 0 : std::size_t{row} * rows_, near_rows_.empty() ? 0 : rows_);
    }
    /// The good part of the pairs of two bins of the long form whose sides can join.
    [[nodiscard]] double weight(std::uint32_t a, std::uint32_t b) const {
        return weighted() ? weights_of(a)[b] : near_rows(row_[a])[row_[b]];
    }
    /// The good part of the pairs within a bin whose side can join itself.
    [[nodiscard]] double own_weight(std::uint32_t bin) const {
        return near_rows_.empty() && !weighted() ? 1 : weight(bin, bin);
    }
    /// Whether every weight is 0 or 1: sums are those over pairs of crystals.
    [[nodiscard]] bool exact() const { return exact_; }

  private:
    void take_ring(const config::Geometry& geometry, const PairRule& rule, std::uint32_t zones);
    void take_long_form(const config::PairGeometry& pairs, const PairRule& rule, const PairSides& sides,
                        std::uint32_t zones);
    /// Sorts the crystals into bins by cell, strip and row.
    void fill(std::span<const std::uint32_t> strips, std::span<const std::uint32_t> rows,
              std::uint32_t cells);
    void find_near_rows(const PairRule& rule, std::span<const std::uint32_t> rows);
    void find_weights(const PairRule& rule);

    std::uint32_t rows_ = 1;
    std::vector<std::uint32_t> order_;
    std::vector<std::uint32_t> first_;
    std::vector<std::uint32_t> row_;
    std::vector<std::uint32_t> first_bin_;
    std::vector<std::uint32_t> cell_of_;
    std::vector<double> near_rows_;
    std::vector<float> weights_;
    bool exact_ = true;
};

}  // namespace petacq::gpu
