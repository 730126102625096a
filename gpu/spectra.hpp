// The spectra that the pipeline fills on request (config::Spectra), and the part of one detector unit.
#pragma once

#include <cstdint>
#include <vector>

#include "config/geometry.hpp"
#include "config/spectra.hpp"

namespace petacq::gpu {

/// The counts of one detector unit.
struct UnitSpectra {
    std::vector<std::uint32_t> flood;     ///< [x + y * position_size]
    std::vector<std::uint32_t> energies;  ///< [local crystal][config::Spectra::energy_bins]
};

/// Throws std::invalid_argument unless the counts have the shapes of this scanner.
void check_shapes(const config::Spectra& counts, const config::Geometry& geometry);

}  // namespace petacq::gpu
