// How well photons are found, from a run of their nuclide alone.
#pragma once

#include "net/base/worker_pool.hpp"
#include "tools/petlm/reconstruction/corrections/scatter_simulation.hpp"
#include "tools/petlm/reconstruction/gammas/gamma_model.hpp"

namespace petacq::gammas {

/// The efficiency, at most 1, with which the simulations (GammaChance, SpuriousPairs) have as many gammas for
/// each pair as a run of the nuclide alone: `share` true triples for each prompt that is not random. One step
/// towards it from a guess, which leaves less than a tenth of its error: gammas that are seen grow nearly as
/// the efficiency does, and spurious pairs, which have none, hardly change. `decays`: where its decays are.
/// `found_pairs`: where the decays are whose pairs are found. `found`: as of SpuriousPairs.
double improved_efficiency(double guess, const GammaModel& model, const corrections::Activity& decays,
                           const corrections::Activity& found_pairs, double share,
                           const corrections::OfPair& found, net::WorkerPool& pool);

/// The efficiency, at most 1, with which the simulation has as many pairs for each single in their window as
/// a run of the nuclide alone, without randoms: `pairs_per_single`. Singles that are none of the nuclide (of
/// the crystals, from outside of the field of view) make it too small. `decays`, `found`: likewise.
double efficiency_by_singles(const GammaModel& model, const corrections::Activity& decays,
                             double pairs_per_single, const corrections::OfPair& found,
                             net::WorkerPool& pool);

}  // namespace petacq::gammas
