// The activity of a source that emits a gamma with its positrons, from its own rates: the coincidence method.
#pragma once

#include <vector>

namespace petacq::estimate {

/// A sum of weights, and that of their squares.
struct WeightedCount {
    double sum = 0;
    double squares = 0;
    void add(double weight) {
        sum += weight;
        squares += weight * weight;
    }
};

/// What was counted of a part of the source. All parts emit equally.
struct PartCounts {
    WeightedCount pairs;    ///< prompts of its decays, without randoms and spurious pairs
    WeightedCount triples;  ///< of these, with a gamma in another detector unit than both photons of the pair
    double own_units = 0;   ///< share of all gammas in the detector units of a pair, mean over its pairs
};

struct CoincidenceCounts {
    double seconds = 0;
    double gammas = 0;             ///< singles in the gamma window
    double background_per_s = 0;   ///< of these, without the source
    double background_error = 0;   ///< per s
    double triples_own_units = 0;  ///< triples whose gamma is in a detector unit of their pair
    std::vector<PartCounts> parts;
};

/// Of the nuclide.
struct GammaYield {
    double gammas = 1;                ///< per decay
    double gammas_with_positron = 1;  ///< per positron
};

/// By how much photons of one decay that meet in a detector unit make the product of pairs and gammas by
/// triples too high, if their energies add up.
struct SummingFactor {
    double factor = 1;
    double error = 0;  ///< relative
};

/// All errors are relative, one standard deviation.
struct CoincidenceActivity {
    double becquerel = 0;          ///< mean over the time
    double pair_sensitivity = 0;   ///< pairs per decay
    double gamma_sensitivity = 0;  ///< gammas detected per decay
    /// What the activity was multiplied by for such photons; 1 where units keep the photons apart.
    double summing = 1;
    double counting_error = 0;
    double summing_error = 0;
    [[nodiscard]] double error() const;
};

/// With P pairs, G gammas and T triples per second, each chance of detection once in one and once in another
/// rate, A = P G / T, whatever the efficiencies, dead times and the branching to positrons are (P. J.
/// Campion, Int. J. Appl. Radiat. Isot. 4 (1959) 232). Of an extended source, T / P is the efficiency for
/// gammas of each part; A = G / mean(T / P). REQUIRES: pairs and triples of every part.
CoincidenceActivity coincidence_activity(const CoincidenceCounts& counts, const GammaYield& yield,
                                         const SummingFactor& summing);

}  // namespace petacq::estimate
