#include "tools/petsim/physics/compton.hpp"

#include <algorithm>
#include <cmath>

namespace petacq::sim {

double klein_nishina_density(double energy, double cosine) {
    const double p = compton_share(energy, cosine);
    return p * p * (p + 1 / p - (1 - cosine * cosine));
}

double klein_nishina_total(double energy) {
    const double k = energy / electron_keV;
    // The closed form loses all digits to cancellation at small k, where its series serves.
    if (k < 0.01) return 1 - 2 * k + 5.2 * k * k - 13.3 * k * k * k;
    const double log = std::log1p(2 * k);
    const double one = 1 + 2 * k;
    return 0.75 * ((1 + k) / (k * k * k) * (2 * k * (1 + k) / one - log) + log / (2 * k) -
                   (1 + 3 * k) / (one * one));
}

// In the share P of the energy that is kept, the density is (P + 1 / P) (1 - P sin^2 / (1 + P^2)). The first
// factor is drawn from exactly, the second is the chance to accept.
double draw_compton_cosine(double energy, Random& random) {
    const double k = energy / electron_keV;
    const double least = 1 / (1 + 2 * k);
    const double inverse_part = -std::log(least);          // the integral of 1 / P
    const double linear_part = 0.5 * (1 - least * least);  // and that of P
    for (;;) {
        double share = 0;
        if (random.uniform() * (inverse_part + linear_part) < inverse_part) {
            share = std::exp(-inverse_part * random.uniform());
        } else {
            share = std::sqrt(least * least + (1 - least * least) * random.uniform());
        }
        const double turn = std::clamp((1 - share) / (k * share), 0.0, 2.0);  // 1 - cosine
        const double sine2 = turn * (2 - turn);
        if (random.uniform() < 1 - share * sine2 / (1 + share * share)) return 1 - turn;
    }
}

}  // namespace petacq::sim
