// Counts of the frames of a run by position and by energy. petcal derive makes a calibration from them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "config/energy_bins.hpp"
#include "config/scanner/geometry.hpp"

namespace petacq::config {

/// Counts of frames with valid markers and addresses, whatever their energy and time. Plain counts: they add
/// up over slices, runs and hosts.
struct Spectra {
    /// [bdm][du][x + y * position_size]
    std::vector<std::uint32_t> floods;
    /// [crystal][energy_bins] frames whose position lies in the crystal, by the calibration in use.
    std::vector<std::uint32_t> energies;
    /// SHA-256 of the file of the calibration in use, lower-case hex; empty: unknown.
    std::string calibration_sha256;

    /// Counts of nothing, in the shapes of this scanner.
    static Spectra none(const Geometry& geometry);
    /// Adds counts of the same scanner. If they were taken with different calibrations, none is known.
    Spectra& operator+=(const Spectra& more);
    bool operator==(const Spectra&) const = default;
};

/// Reads a spectra file (HDF5, the tables "floods" and "energies"). Throws config::Error naming the file, the
/// table, the expected and the found shape.
Spectra load_spectra(const std::filesystem::path& file, const Geometry& geometry);
/// Replaces the file as a whole. Throws config::Error when a shape is wrong, IoError when the file cannot be
/// written.
void save_spectra(const std::filesystem::path& file, const Geometry& geometry, const Spectra& spectra);

}  // namespace petacq::config
