// The true detector: what each crystal of a simulated scanner does, whatever a calibration says about it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "config/calibration.hpp"
#include "config/scanner/scanner.hpp"

namespace petacq::sim {

enum class CrystalState : std::uint8_t { good = 0, dead = 1, noisy = 2 };

struct TrueCrystal {
    float spot_x = 0;  ///< centre of its spot in the flood map; the x of a frame is the nearest whole number
    float spot_y = 0;
    float spot_sigma_x = 0;
    float spot_sigma_y = 0;
    float gain = 1;               ///< ADC counts per keV at 511 keV
    float nonlinearity = 0;       ///< see adc_of
    float energy_resolution = 0;  ///< FWHM / energy at 511 keV
    float efficiency = 1;         ///< for photons, relative: multiplies --efficiency
    float time_offset_ps = 0;     ///< added to the raw time, as that of a calibration
    CrystalState state = CrystalState::good;
};

struct Detector {
    std::vector<TrueCrystal> crystals;  ///< by crystal number
    double crosstalk = 0;   ///< chance that a neighbour in the block gets up to half of the light of a hit
    double noise_hz = 0;    ///< additional counts of each noisy crystal
    std::string made_with;  ///< JSON: how the file was made; only for people
    std::string sha256;     ///< of the file; empty without one
};

/// The response of a crystal, gain E (1 + n) / (1 + n E / 511 keV) with its non-linearity n; not limited.
double adc_of(const TrueCrystal& crystal, double energy);
/// The inverse; infinite for values that no energy reaches.
double energy_of(const TrueCrystal& crystal, double adc);

/// Reads a detector file (docs/reference/petsim.md) and checks it against the scanner. Throws config::Error
/// naming the file, the data set, what was expected and what was found. One thread at a time uses HDF5.
Detector load_detector(const std::filesystem::path& file, const config::Geometry& geometry);
/// Writes one, replacing the file as a whole. Throws config::Error when values are wrong, config::IoError
/// when the file cannot be written.
void save_detector(const std::filesystem::path& file, const config::Geometry& geometry,
                   const Detector& detector);
/// Throws config::Error.
void check_detector(const config::Geometry& geometry, const Detector& detector);

/// The calibration that fits a detector best: the crystal of the nearest spot within one pitch, the true
/// response at the middle of each energy bin, the true time offsets in whole ticks.
config::Calibration calibration_of(const config::Scanner& scanner, const Detector& detector);

}  // namespace petacq::sim
