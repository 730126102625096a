// histograms.json of a run.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "config/scanner/geometry.hpp"
#include "gpu/histograms.hpp"

namespace petacq::daemon {

/// Counts by crystal, energies by BDM, and the mean temperature of each detector unit (null: unknown).
nlohmann::json to_json(const gpu::SinglesHistograms& h, const config::Geometry& g);

}  // namespace petacq::daemon
