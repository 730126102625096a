// The spectra that the pipeline fills on request (config::Spectra), and the part of one detector unit.
#pragma once

#include <cstdint>
#include <vector>

#include "config/spectra.hpp"

namespace petacq::gpu {

/// The counts of one detector unit.
struct UnitSpectra {
    std::vector<std::uint32_t> flood;     ///< [x + y * position_size]
    std::vector<std::uint32_t> energies;  ///< [local crystal][config::energy_bins]

    /// Adds counts of a unit of the same scanner.
    UnitSpectra& operator+=(const UnitSpectra& more);
};

}  // namespace petacq::gpu
