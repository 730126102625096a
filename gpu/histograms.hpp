// The histograms that the pipeline fills during conversion.
#pragma once

#include <cstdint>
#include <vector>

#include "config/energy_bins.hpp"

namespace petacq::gpu {

/// Histograms since the pipeline was created, filled during conversion with all frames inside a crystal, also
/// with late ones and time jumps. Frames with a bad marker or address, or outside any crystal, do not count,
/// not even in the temperatures, because their fields cannot be trusted.
struct SinglesHistograms {
    std::vector<std::uint64_t> per_crystal;           ///< [crystal] singles inside the energy window
    std::vector<std::uint64_t> energy;                ///< [bdm][config::energy_bins] of energy_bin_keV
    std::vector<std::int64_t> temperature_sum_16ths;  ///< [bdm][du] sum of sixteenths of a degree C
    std::vector<std::uint64_t> temperature_count;     ///< [bdm][du] frames in that sum
    float energy_bin_keV = config::energy_bin_keV;    ///< config::singles_bin_keV() if there are gammas

    /// Adds histograms of the same shape.
    SinglesHistograms& operator+=(const SinglesHistograms& more);
    /// Subtracts an earlier state of the same histograms.
    SinglesHistograms& operator-=(const SinglesHistograms& earlier);
};

}  // namespace petacq::gpu
