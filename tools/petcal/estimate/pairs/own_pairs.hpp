// Which pairs come from the crystals that they name.
#pragma once

#include <cstdint>
#include <vector>

#include "config/geometry.hpp"

namespace petacq::estimate {

/// [crystal] Those beside it in its block, up to four. Their spots in the flood map overlap with its own.
using Neighbours = std::vector<std::vector<std::uint32_t>>;
Neighbours neighbours_in_blocks(const config::Geometry& geometry);

/// Where pairs come from. At a spot width of a quarter of their distance 7 % of the hits lie in a crystal
/// beside their own; offsets of crystals differ by less than a pair's standard deviation or two, so that the
/// size of a residual alone cannot tell such a pair.
struct PairModel {
    double sigma = 0;      ///< of a pair, ticks
    double beside = 0.02;  ///< share of a crystal's hits that belong to a given neighbour
    double stray = 0.05;   ///< share of pairs that are random or scattered
    double range = 1;      ///< ticks; strays lie evenly in it
};

/// What the model says of one pair.
struct PairOrigin {
    double own = 0;       ///< chance that it comes from the two crystals that it names
    double beside = 0;    ///< chance that it comes from one of them and a neighbour of the other
    double expected = 0;  ///< sum over all sources of their chance times the residual from them, ticks
};

/// A mixture of Gaussians and an even background, by Bayes' rule. `residual`: time difference less that of
/// the offsets, ticks. `shifts`: for each neighbour of a or b the residual if the pair came from it.
PairOrigin origin_of(const PairModel& model, double residual, const std::vector<double>& shifts);

}  // namespace petacq::estimate
