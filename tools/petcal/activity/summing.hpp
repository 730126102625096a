// What photons of one decay that meet in a detector unit change in the rates of pairs, gammas and triples.
#pragma once

#include "config/nuclides/nuclides.hpp"
#include "config/scanner/scanner.hpp"
#include "net/base/worker_pool.hpp"
#include "tools/petcal/activity/line_weights.hpp"
#include "tools/petcal/activity/source_lines.hpp"
#include "tools/petlm/reconstruction/corrections/energy_window.hpp"

namespace petacq::petcal {

/// References must outlive the simulation.
struct SummingModel {
    const config::Scanner& scanner;
    const SourceLines& source;
    const LineWeights& weights;
    const config::Nuclide& nuclide;
    const config::Gamma& gamma;  ///< the one in the window of the gammas
    corrections::EnergyWindow pairs;
    corrections::EnergyWindow gammas;
};

/// Rates with energies that add up, divided by those of photons that units keep apart.
struct Summing {
    double pairs = 1;
    double gammas = 1;
    double triples = 1;  ///< whose gamma is in another unit than the photons of the pair
    double factor = 1;   ///< pairs * gammas / triples: by so much the product of the rates is too high
    double error = 0;    ///< of the factor, relative: of the simulation, and a tenth of the correction
};

/// A Monte Carlo simulation of decays in air: their photons interact in the crystals
/// (corrections::Crystals), each alone, and all of a decay together. Gammas have no correlation with the
/// photons of the annihilation, so triples are counted with gammas of other decays, which gives more of them.
/// The same for any number of threads.
Summing simulate_summing(const SummingModel& model, net::WorkerPool& pool);

}  // namespace petacq::petcal
