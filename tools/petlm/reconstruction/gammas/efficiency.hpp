// How well photons are found, from a run of their nuclide alone.
#pragma once

#include "net/base/worker_pool.hpp"
#include "tools/petlm/reconstruction/corrections/scatter_simulation.hpp"
#include "tools/petlm/reconstruction/gammas/gamma_model.hpp"

namespace petacq::gammas {

/// True triples of a run of the nuclide alone.
struct TriplesAlone {
    double count = 0;
    double per_pair = 0;  ///< for each pair of annihilation photons: neither random nor spurious
};

/// The efficiency, at most 1, with which GammaChance has as many gammas for each pair as such a run. One step
/// towards it from a guess, which leaves less than a tenth of its error: gammas that are seen grow nearly as
/// the efficiency does. `found_pairs`: where the decays are whose pairs are found.
double improved_efficiency(double guess, const GammaModel& model, const corrections::Activity& found_pairs,
                           const TriplesAlone& triples, net::WorkerPool& pool);

/// The efficiency, at most 1, with which the simulation has as many pairs for each single in their window as
/// a run of the nuclide alone, without randoms: `pairs_per_single`. Singles that are none of the nuclide (of
/// the crystals, from outside of the field of view) make it too small. `decays`: where they are. `found`: as
/// of SpuriousPairs.
double efficiency_by_singles(const GammaModel& model, const corrections::Activity& decays,
                             double pairs_per_single, const corrections::OfPair& found,
                             net::WorkerPool& pool);

}  // namespace petacq::gammas
