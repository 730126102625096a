// The random coincidences to be expected from the singles rates. This estimate needs no delayed window and
// has very little noise.
//
// Crystals i and j see independent Poisson streams of S_i and S_j singles per second. On average, S_j * w
// singles of j follow a single of i within a window of width w, and vice versa, since either may come first.
// Together they form 2 w S_i S_j random pairs per second (the "singles rate" formula, 2 tau S1 S2 of the
// textbooks, e.g. Knoll, Radiation Detection and Measurement, ch. 17; Oliver and Rafecas, PLoS ONE 11 (2016)
// e0162096, discuss where it is biased).
//
// Times are whole ticks, so the width must be counted in ticks. A delayed window [t + D, t + D + tau] is
// inclusive and holds tau + 1 ticks. With w = (tau + 1) ticks the sum is the exact expectation of delayeds at
// low rates, since each single is both an opener and a partner. The two prompt directions share one tick (dt
// = 0), so the randoms among prompts are (2 tau + 1) / (2 tau + 2) of this value.
//
// At higher rates fewer delayeds are found, because the multiples policy handles windows of more than two
// singles, and the formula counts singles of true pairs as if they could still form random pairs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "config/geometry.hpp"
#include "gpu/coincidence_rules.hpp"

namespace petacq::gpu {

/// Random pairs per second.
struct ExpectedRandoms {
    /// [crystal] 2 w S_i sum S_j over the crystals j that form a good pair with i. Each pair counts for both
    /// of its crystals.
    std::vector<double> per_crystal;
    /// [a * modules + b], modules around the ring: pairs with one single in a and the other in b. Symmetric;
    /// each pair counts once, also within one module (a = b).
    std::vector<double> module_pairs;
    std::uint32_t modules = 0;
    /// The total, with each pair counted once: half of the sum over crystals.
    double total = 0;
};

/// Used by one thread at a time. The same input gives the same result, bit for bit, on the same back-end;
/// back-ends differ in rounding.
class RandomsEstimator {
  public:
    virtual ~RandomsEstimator() = default;
    /// `singles_per_s`: [crystal], rates within the energy window. Throws std::invalid_argument when its
    /// length is not the number of crystals, std::runtime_error when the back-end fails.
    virtual void estimate(std::span<const double> singles_per_s, ExpectedRandoms& out) = 0;
};

/// The window width w, in seconds.
double randoms_window_s(const CoincidenceRules& rules, double tick_s);

/// Estimates on the CPU, in the calling thread. Whether two crystals can pair depends on module and ring
/// only, so sums over (module, ring) suffice. The work grows with modules^2 * rings + crystals and takes well
/// below a millisecond.
std::unique_ptr<RandomsEstimator> make_host_randoms(const config::Geometry& geometry,
                                                    const CoincidenceRules& rules, double tick_s);

}  // namespace petacq::gpu
