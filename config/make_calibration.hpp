// A realistic calibration for a simulated scanner. `petcal make` writes it; tests and the simulator use it
// without a file.
#pragma once

#include <cstdint>
#include <vector>

#include "config/calibration.hpp"
#include "config/scanner/scanner.hpp"

namespace petacq::config {

struct CalibrationModel {
    std::uint64_t seed = 1;          ///< the same seed and model give the same tables, everywhere
    std::uint32_t bins = 256;        ///< energy bins of adc_per_bin ADC counts each
    double gain_keV_per_adc = 0.25;  ///< NOLINT(readability-identifier-naming): mean factor of all crystals
    double energy_spread = 0.08;     ///< relative standard deviation of the crystals' factors
    double nonlinearity = 0;         ///< relative rise of a crystal's factor from the first to the last bin
    std::int32_t time_offset_ticks = 0;  ///< offsets are uniform in [-n, n]; 0: no table of offsets
};

/// How the flood map of one detector unit is distorted. Positions run over -1..1 in both directions.
struct FloodDistortion {
    double pincushion;  ///< regions get smaller towards the corners
    double reach;       ///< position of the edge of the crystals, on the axes
    double centre_x;
    double centre_y;
    /// Undistorted positions are divided by this, so that the edge of the crystals lies at 1.
    [[nodiscard]] double scale() const { return reach * (1 + pincushion * reach * reach); }
};
/// Those of all detector units in make_calibration with this seed.
std::vector<FloodDistortion> flood_distortions(const Geometry& geometry, std::uint64_t seed);

/// Position table: per detector unit a flood map with a region for each crystal (config/flood_layout.hpp),
/// with pincushion distortion, thin gaps between the regions and an outside rim. A unit that does not exist
/// has no position inside a crystal. Every crystal has at least one position where position_size allows it (4
/// or more positions per crystal and direction). Throws config::Error for an invalid model
/// (docs/reference/configuration.md has the ranges).
Calibration make_calibration(const Scanner& scanner, const CalibrationModel& model);

}  // namespace petacq::config
