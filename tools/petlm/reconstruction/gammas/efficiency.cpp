#include "tools/petlm/reconstruction/gammas/efficiency.hpp"

#include <algorithm>

#include "tools/petlm/reconstruction/gammas/gamma_chance.hpp"
#include "tools/petlm/reconstruction/gammas/spurious_pairs.hpp"

namespace petacq::gammas {

double improved_efficiency(double guess, const GammaModel& model, const corrections::Activity& decays,
                           const corrections::Activity& found_pairs, double share,
                           const corrections::OfPair& found, net::WorkerPool& pool) {
    const double seen = GammaChance(model, found_pairs, guess, pool).mean_seen();
    if (!(seen > 0)) return 1;
    const double spurious = SpuriousPairs(model, decays, guess, found, pool).per_pair();
    return std::min(1.0, guess * share * (1 + spurious) / seen);
}

double efficiency_by_singles(const GammaModel& model, const corrections::Activity& decays,
                             double pairs_per_single, const corrections::OfPair& found,
                             net::WorkerPool& pool) {
    constexpr double guess = 0.7;  // pairs per single grow nearly as the efficiency does
    constexpr std::size_t simulated = 100'000;
    const double of_guess = SpuriousPairs(model, decays, guess, found, pool, simulated).per_single();
    return of_guess > 0 ? std::min(1.0, guess * pairs_per_single / of_guess) : 1;
}

}  // namespace petacq::gammas
