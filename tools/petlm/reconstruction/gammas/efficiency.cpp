#include "tools/petlm/reconstruction/gammas/efficiency.hpp"

#include <algorithm>

#include "tools/petlm/reconstruction/gammas/gamma_chance.hpp"

namespace petacq::gammas {

double improved_efficiency(double guess, const GammaModel& model, const corrections::Activity& found_pairs,
                           const TriplesAlone& triples, net::WorkerPool& pool) {
    const double seen = GammaChance(model, found_pairs, guess, triples.count, pool).mean_seen();
    return seen > 0 ? std::min(1.0, guess * triples.per_pair / seen) : 1;
}

}  // namespace petacq::gammas
