// What the fate of the photons of a decay with prompt gammas depends on.
#pragma once

#include <vector>

#include "config/choices.hpp"
#include "config/nuclides/nuclides.hpp"
#include "config/scanner/scanner.hpp"
#include "tools/petlm/reconstruction/corrections/attenuation.hpp"
#include "tools/petlm/reconstruction/corrections/crystal_hits.hpp"
#include "tools/petlm/reconstruction/corrections/energy_window.hpp"
#include "tools/petlm/reconstruction/corrections/scatter_simulation.hpp"

namespace petacq::gammas {

/// All references must outlive what uses it.
struct GammaModel {
    const config::Scanner& scanner;
    const corrections::AttenuatingObject& object;  ///< may be empty
    const config::Nuclide& nuclide;
    corrections::CrystalModel crystals;
    corrections::EnergyWindow pairs;   ///< in which photons make pairs
    corrections::EnergyWindow gammas;  ///< of the gammas
    config::GammaPolicy policy = config::GammaPolicy::all;
    config::MultiplesPolicy multiples = config::MultiplesPolicy::remove_multiples;
    std::vector<float> relative;  ///< [crystal] efficiency, relative to their mean; empty: all are the same
    corrections::AnglesInTime angles = {};
};

}  // namespace petacq::gammas
