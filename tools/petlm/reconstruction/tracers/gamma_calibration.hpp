// How well the gammas of a nuclide are found, from a run of it alone.
#pragma once

#include "config/nuclides/nuclides.hpp"
#include "tools/petlm/reconstruction/image/image.hpp"

namespace petacq::tracers {

struct GammaCalibration {
    double efficiency = 1;  ///< of gammas::GammaChance
    double error = 0;       ///< relative, by counting
};

/// Reads the run and makes images of it. Throws as image() does, daemon::NotListMode for a run without
/// triples, BadInput for one without true ones.
GammaCalibration calibrate_gammas(const petlm::ImageOptions& run, const config::Nuclide& nuclide);

}  // namespace petacq::tracers
