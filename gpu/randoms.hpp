// Random coincidences that are to be expected from the rates of singles: the estimate that needs no delayed
// window and has next to no noise.
//
// Crystals i and j see independent Poisson streams of S_i and S_j singles per second. To a single of i there
// come S_j * w singles of j within a window of width w, and the same the other way round, as either may be
// the first: 2 w S_i S_j random pairs per second for the two together (the "singles rate" formula, 2 tau S1
// S2 of the textbooks, e.g. Knoll, Radiation Detection and Measurement, ch. 17; Oliver and Rafecas, PLoS ONE
// 11 (2016) e0162096, discuss where it is biased).
//
// Times are whole ticks, so the width has to be counted in ticks. A delayed window [t + D, t + D + tau] is
// inclusive and holds tau + 1 ticks: w = (tau + 1) ticks makes the sum the exact expectation of delayeds at
// low rates, each single being an opener and a partner. Prompts have one tick less for both directions
// together (dt = 0 is one tick, not two): their randoms are (2 tau + 1) / (2 tau + 2) of it.
//
// At higher rates fewer delayeds than that are seen, as windows of more than two go to the multiples policy;
// and singles of true pairs are counted as if they were free to make random ones.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "config/scanner.hpp"
#include "gpu/pipeline.hpp"

namespace petacq::gpu {

/// Random pairs per second.
struct ExpectedRandoms {
    /// [crystal] 2 w S_i sum S_j over the crystals j that make a good pair with i. A pair counts at both of
    /// its crystals.
    std::vector<double> per_crystal;
    /// [a * modules + b], modules around the ring: pairs with one single in a and the other in b, each pair
    /// once; symmetric. Inside one module (a = b) each pair once as well.
    std::vector<double> module_pairs;
    std::uint32_t modules = 0;
    /// Each pair once: half of the sum over crystals.
    double total = 0;
};

/// One thread at a time. Gives the same result for the same input, bit for bit, on the same back-end;
/// back-ends differ by rounding.
class RandomsEstimator {
  public:
    virtual ~RandomsEstimator() = default;
    /// `singles_per_s`: [crystal], in the energy window. Throws std::invalid_argument when it has another
    /// length than there are crystals, std::runtime_error when the back-end fails.
    virtual void estimate(std::span<const double> singles_per_s, ExpectedRandoms& out) = 0;
};

/// w in seconds.
double randoms_window_s(const CoincidenceRules& rules, double tick_s);

/// On the CPU, on the calling thread. Good partners depend on module and ring only, so that sums over
/// (module, ring) do: the work grows with modules^2 * rings + crystals, well below a millisecond.
std::unique_ptr<RandomsEstimator> make_host_randoms(const config::Geometry& geometry,
                                                    const CoincidenceRules& rules, double tick_s);

}  // namespace petacq::gpu
