#include "tools/petlm/reconstruction/gammas/efficiency.hpp"

#include <algorithm>

#include "tools/petlm/reconstruction/gammas/gamma_chance.hpp"
#include "tools/petlm/reconstruction/gammas/spurious_pairs.hpp"

namespace petacq::gammas {

double improved_efficiency(double guess, const GammaModel& model, const corrections::Activity& found_pairs,
                           const TriplesAlone& triples, net::WorkerPool& pool) {
    const double seen = GammaChance(model, found_pairs, guess, triples.count, pool).mean_seen();
    return seen > 0 ? std::min(1.0, guess * triples.per_pair / seen) : 1;
}

double efficiency_by_singles(const GammaModel& model, const corrections::Activity& decays,
                             double pairs_per_single, const corrections::OfPair& found,
                             net::WorkerPool& pool) {
    constexpr double guess = 0.7;  // pairs per single grow nearly as the efficiency does
    const double of_guess = SpuriousPairs(model, decays, guess, found, 0, pool).per_single();
    return of_guess > 0 ? std::min(1.0, guess * pairs_per_single / of_guess) : 1;
}

}  // namespace petacq::gammas
