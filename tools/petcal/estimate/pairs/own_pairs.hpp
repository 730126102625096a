// Which pairs come from the crystals that they name.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "config/scanner/scanner.hpp"

namespace petacq::estimate {

/// [crystal] Those beside it in the same layer of its detector unit, up to four. Their spots in the flood map
/// overlap with its own.
using Neighbours = std::vector<std::vector<std::uint32_t>>;
Neighbours neighbours_in_units(const config::Scanner& scanner);

/// [crystal] The number of its block: those that neighbours join. Photons that scatter in the crystals leave
/// a position between those where they lose energy, which may be anywhere in the block.
std::vector<std::uint32_t> blocks_of(const Neighbours& neighbours);

/// Where pairs come from. At a spot width of a quarter of their distance 7 % of the hits lie in a crystal
/// beside their own; offsets of crystals differ by less than a pair's standard deviation or two, so that the
/// size of a residual alone cannot tell such a pair.
struct PairModel {
    double sigma = 0;      ///< of a pair, ticks
    double beside = 0.02;  ///< share of a crystal's hits that belong to a given neighbour
    double apart = 0.02;   ///< share of a crystal's hits that belong to any crystal of its block
    double stray = 0.05;   ///< share of pairs that are random or scattered
    double range = 1;      ///< ticks; strays lie evenly in it
};

/// What the model says of one pair.
struct PairOrigin {
    double own = 0;       ///< chance that it comes from the two crystals that it names
    double beside = 0;    ///< chance that it comes from one of them and a neighbour of the other
    double apart = 0;     ///< chance that it comes from one of them and any crystal of the other's block
    double expected = 0;  ///< sum over all sources of their chance times the residual from them, ticks
};

/// The residual of a pair if one of its hits came from any crystal of its block.
struct BlockShift {
    double residual = 0;  ///< from the mean over the block, ticks
    double spread = 0;    ///< standard deviation of the offsets in the block, ticks
};

/// A mixture of Gaussians and an even background, by Bayes' rule. `residual`: time difference less that of
/// the offsets, ticks. `shifts`: for each neighbour of a or b the residual if the pair came from it;
/// `blocks`: the same for their blocks.
PairOrigin origin_of(const PairModel& model, double residual, std::span<const double> shifts,
                     std::span<const BlockShift> blocks);

}  // namespace petacq::estimate
