// The pairs of which a photon scattered in the source of a normalisation.
#pragma once

#include <span>

#include "config/scanner/scanner.hpp"
#include "gpu/rules/coincidence_rules.hpp"
#include "net/base/worker_pool.hpp"
#include "tools/petcal/estimate/pairs/normalise.hpp"
#include "tools/petcal/estimate/pairs/scan_model.hpp"
#include "tools/petlm/reconstruction/corrections/energy_window.hpp"

namespace petacq::petcal {

/// What decides which pairs of a scan are found.
struct ScatterInSource {
    const gpu::CoincidenceRules& rules;
    corrections::EnergyWindow window;
    /// [crystal] Mean 1 by place in the module. The factors by place belong to pairs that fly along the line.
    std::span<const double> efficiency;
};

/// Takes the scattered pairs out of the counts, which are less their randoms and not finished yet. Activity
/// and attenuation are those of the cylinder of the scan; a simulation of photons in it
/// (corrections::ScatterSimulation) tells how many pairs on the lines that count are scattered, and between
/// which crystals. Returns their expected number. Deterministic.
double subtract_scatter(const config::Scanner& scanner, const estimate::ScanModel& model,
                        const ScatterInSource& how, estimate::LineCounts& counts, net::WorkerPool& pool);

}  // namespace petacq::petcal
