#include "tools/petcal/estimate/pairs/coincidence_method.hpp"

#include <algorithm>
#include <cmath>

namespace petacq::estimate {
double CoincidenceActivity::error() const {
    return std::hypot(counting_error, summing_error);
}

CoincidenceActivity coincidence_activity(const CoincidenceCounts& c, const GammaYield& yield,
                                         const SummingFactor& summing) {
    double efficiency = 0;  // of the gammas, mean over the source
    double variance = 0;
    double pairs = 0;
    double expected_own = 0;
    for (const PartCounts& part : c.parts) {
        const double elsewhere = 1 - part.own_units;
        efficiency += part.triples.sum / (part.pairs.sum * elsewhere);
        variance += part.triples.squares / std::pow(part.pairs.sum * elsewhere, 2);
        pairs += part.pairs.sum;
        expected_own += part.triples.sum * part.own_units / elsewhere;
    }
    const auto parts = static_cast<double>(c.parts.size());
    efficiency /= parts;
    variance /= parts * parts;
    const double gammas_per_s = c.gammas / c.seconds - c.background_per_s;
    const double gammas_error = std::hypot(std::sqrt(c.gammas) / c.seconds, c.background_error);

    CoincidenceActivity out;
    out.becquerel = gammas_per_s / efficiency * yield.gammas_with_positron / yield.gammas;
    // Units that keep the photons of a decay apart show it by triples with two photons in one unit.
    const double kept_apart =
        expected_own > 0 ? std::clamp(c.triples_own_units / expected_own, 0.0, 1.0) : 1.0;
    out.summing = 1 / (1 + (1 - kept_apart) * (summing.factor - 1));
    out.summing_error = (1 - kept_apart) * summing.error;
    out.becquerel *= out.summing;
    out.counting_error = std::hypot(std::sqrt(variance) / efficiency, gammas_error / gammas_per_s);
    out.pair_sensitivity = pairs / c.seconds / out.becquerel;
    out.gamma_sensitivity = gammas_per_s / out.becquerel;
    return out;
}

}  // namespace petacq::estimate
