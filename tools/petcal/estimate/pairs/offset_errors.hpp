// How uncertain the offsets of crystals are that pairs join.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tools/petcal/estimate/pairs/pair_equations.hpp"

namespace petacq::estimate {

/// [crystal] By how much the variance of an offset exceeds that for given offsets of all other crystals,
/// which is sum of pull^2 / (sum of weight)^2 over the pairs of the crystal. `equations`: of `pairs`, with
/// the weights at the solution. `pulls`: [pair] weight times residual: its noise. `groups`: [crystal] numbers
/// below the number of crystals; offsets are those from the mean of a group. A source that joins only
/// opposite crystals leaves patterns nearly free, and these are most of the variance then.
///
/// Pairs get the pulls that were found, with random signs, and the offsets that follow are as wrong as those
/// of another scan (wild bootstrap; C. F. J. Wu, Ann. Stat. 14, 1986). What is known exactly, the share by a
/// crystal's own pairs, is taken out of each trial, so that 24 of them give variances to a tenth where own
/// pairs are most of it, and to 30 % otherwise. The trials are solved together by conjugate gradients.
/// Always the same for the same pairs.
std::vector<double> shared_variance(const PairEquations& equations, std::span<const TimeDifference> pairs,
                                    std::span<const float> pulls, std::span<const std::uint32_t> groups);

}  // namespace petacq::estimate
