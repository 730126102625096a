// Time offsets of crystals from the coincidences of a known source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tools/petcal/estimate/pairs/own_pairs.hpp"

namespace petacq::estimate {

/// One prompt. A pair whose line misses the source (path_difference_mm) is left out by the caller.
struct TimeDifference {
    std::uint32_t a = 0;  ///< crystals, different ones
    std::uint32_t b = 0;
    float ticks = 0;  ///< time of b minus time of a, less what the path difference makes
};

struct TimeOffsetOptions {
    std::uint32_t min_pairs = 50;  ///< a crystal with fewer is left out
    double min_determined = 0.5;   ///< share of all crystals; with fewer the data are refused
    std::uint32_t max_steps = 60;  ///< of reweighting
    Neighbours neighbours = {};    ///< of the crystals; empty: hits are always in their own crystal
    std::function<void(std::uint32_t)> on_step = {};  ///< called after each step with their number
};

struct TimeOffsets {
    /// [crystal] To be added to the time offsets with which the times were made; their mean is 0 over the
    /// crystals of a group. 0 for those that are not determined.
    std::vector<double> ticks;
    /// [crystal] Standard error: by the counts, by the errors of the offsets of other crystals, and by hits
    /// that belong to others; infinite where not determined.
    std::vector<double> error_ticks;
    std::vector<std::uint32_t> pairs;         ///< [crystal] of the data
    std::vector<std::uint32_t> undetermined;  ///< crystals with too few pairs, or without a peak in time
    std::uint32_t groups = 0;  ///< of crystals that no pair joins; nothing is known between two groups
    std::vector<std::uint32_t>
        group_of;             ///< [crystal] below `groups`; that of undetermined ones means nothing
    double sigma_ticks = 0;   ///< standard deviation of one pair
    double residual_rms = 0;  ///< ticks; of the pairs in the peak
    double in_peak = 0;       ///< share of the pairs used that lie within 4 sigma
    double beside = 0;        ///< share of the hits that belong to another crystal of the block
    std::uint32_t steps = 0;  ///< of reweighting
};

/// Sparse least squares over the pairs, reweighted. Huber's weights come first: they are convex, so that 5 ns
/// of a whole module are found. Then each pair counts with the chance that it comes from the two crystals
/// that it names, and not from a neighbour, whose offset is another one, or from nowhere (randoms, scatter).
/// These chances, the shares of neighbours and strays, and the width of the peak follow from the data:
/// expectation and maximisation of a mixture (A. P. Dempster, N. M. Laird, D. B. Rubin, J. R. Stat. Soc. B
/// 39, 1977). Weights by the size of the residual alone would draw an offset towards those of the neighbours.
/// Randoms are even around the peak and do not move it; up to half of the pairs may be randoms. Each step is
/// solved by conjugate gradients on the least squares. P. J. Huber, Robust Statistics (1981), ch. 6 and 7,
/// for the first weights and the errors.
///
/// The coincidence window of the scan must contain the peaks of all pairs: it is at least as long as the
/// largest difference of offsets to be found, three sigma, and the path difference.
///
/// A pair fixes the difference of two offsets. A line source on the axis (or a point) joins only opposite
/// crystals, so patterns that are equal at phi and phi + pi change few differences and are found badly;
/// error_ticks says how badly. A cylinder whose radius is a good part of the ring's fixes them.
///
/// Uses all cores; the result does not depend on their number. Memory: 40 bytes per pair besides the data.
/// Throws config::Error when the data are insufficient: too few pairs, no peak, or no solution after
/// max_steps; std::invalid_argument for a pair of unknown or equal crystals. Thread-safe.
TimeOffsets time_offsets(std::size_t crystals, std::span<const TimeDifference> differences,
                         const TimeOffsetOptions& options = {});

}  // namespace petacq::estimate
