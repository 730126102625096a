#include "tools/petcal/estimate/pairs/coincidence_method.hpp"

#include <algorithm>
#include <cmath>

namespace petacq::estimate {
namespace {

/// A gamma of 1.2 MeV leaves energy in a crystal about 0.6 times as often as a photon of 511 keV does. Only
/// an estimate of an error depends on it.
constexpr double gamma_stopping = 0.6;

}  // namespace

double CoincidenceActivity::error() const {
    return std::hypot(counting_error, summing_error);
}

CoincidenceActivity coincidence_activity(const CoincidenceCounts& c, const GammaYield& yield) {
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
    // Of units that keep the photons of a decay apart, triples with two photons in one unit show it.
    const double kept_apart =
        expected_own > 0 ? std::clamp(c.triples_own_units / expected_own, 0.0, 1.0) : 1.0;
    const double hits = c.hits_per_s / out.becquerel;
    const double of_gammas = yield.gammas * gamma_stopping;
    const double of_photons = 2 * yield.positrons;
    double own_units = 0;
    for (const PartCounts& part : c.parts)
        own_units += part.own_units / parts;
    const double shared =
        hits / (of_gammas + of_photons) * (of_gammas * own_units + of_photons * c.gamma_units);
    out.summing = 1 + (1 - kept_apart) * shared / 2;
    out.summing_error = (out.summing - 1) / 2;
    out.becquerel *= out.summing;
    out.counting_error = std::hypot(std::sqrt(variance) / efficiency, gammas_error / gammas_per_s);
    out.pair_sensitivity = pairs / c.seconds / out.becquerel;
    out.gamma_sensitivity = gammas_per_s / out.becquerel;
    return out;
}

}  // namespace petacq::estimate
