// A smooth map from the columns and rows of crystals to places in the flood map: pincushion and the like.
#pragma once

#include <span>
#include <vector>

#include "tools/petcal/estimate/flood.hpp"

namespace petacq::petcal {

/// A place that is known for a column and a row.
struct GridNode {
    double column = 0;
    double row = 0;
    FloodPoint at;
    double weight = 1;
};

/// Polynomials of the third degree, or less where there are too few columns or rows.
class GridWarp {
  public:
    /// Fits by least squares and ignores nodes that are far from the others' grid. `pitch`: the scale of
    /// distances. False when the nodes do not determine a warp.
    bool fit(const FloodShape& shape, std::span<const GridNode> nodes, const FloodPoint& pitch);
    [[nodiscard]] FloodPoint at(double column, double row) const;

  private:
    struct Term {
        int column;
        int row;
    };
    /// The terms for which the nodes have enough columns and rows.
    void choose_terms(std::span<const GridNode> nodes);
    [[nodiscard]] std::vector<double> values_at(double column, double row) const;

    FloodPoint middle_;  ///< column and row
    FloodPoint half_;
    std::vector<Term> terms_;
    std::vector<double> x_;
    std::vector<double> y_;
};

/// The distances from each place to the next ones beside it, and above and below it, the mean of both sides;
/// `pitch` where it has none.
FloodPoints pitches_of(const FloodShape& shape, const FloodPoints& places, const FloodPoint& pitch);

}  // namespace petacq::petcal
