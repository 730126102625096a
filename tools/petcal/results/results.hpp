// The results of petcal derive: files that petcal apply takes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "config/scanner/geometry.hpp"

namespace petacq::petcal {

/// Text attributes of a file, by name: what it was made from.
using Origin = std::map<std::string, std::string>;

/// The program, its version and the time.
Origin made_by(const std::string& command);

struct CrystalsResult {
    std::vector<std::uint16_t> position_table;  ///< as in the calibration; all outside where not derived
    std::vector<std::uint8_t> derived;          ///< [bdm][du]: 1, or 0 where the unit keeps its previous map
    std::vector<float> spots;                   ///< [bdm][du][row * columns + column][x, y]; -1: not derived
    std::vector<float> quality;                 ///< [bdm][du][quality_figures]
    Origin origin;
};
/// Counts per crystal, peaks / crystals, separation along x, along y, share of counts between peaks.
inline constexpr std::uint32_t quality_figures = 5;

struct EnergyResult {
    std::vector<float> energy_factor;  ///< as in the calibration
    std::uint32_t bins = 0;
    std::vector<std::uint8_t> state;  ///< [bdm][du][local crystal]: EnergyState
    std::vector<float>
        peak_keV;  ///< the same, by the previous factors; NOLINT(readability-identifier-naming)
    std::vector<float> resolution;  ///< the same: FWHM / energy at 511 keV; 0: no peak
    std::string map_sha256;         ///< map_checksum() of the calibration that was in use
    Origin origin;
};

enum class EnergyState : std::uint8_t {
    fitted = 0,
    unit_median = 1,  ///< no peak with enough counts: the change is the median of the unit
    kept = 2,         ///< the whole unit has too few: as before
};

/// SHA-256 of a position table as it stands in a file. Energy spectra belong to the positions that make up
/// their crystals.
std::string map_checksum(const config::Geometry& geometry, const std::vector<std::uint16_t>& position_table);

/// Each throws config::Error naming the file and what was expected, config::IoError. Not thread-safe.
CrystalsResult load_crystals(const std::filesystem::path& file, const config::Geometry& geometry);
void save_crystals(const std::filesystem::path& file, const config::Geometry& geometry,
                   const CrystalsResult& result);
EnergyResult load_energy(const std::filesystem::path& file, const config::Geometry& geometry);
void save_energy(const std::filesystem::path& file, const config::Geometry& geometry,
                 const EnergyResult& result);

}  // namespace petacq::petcal
