// The calibration: from a position in the flood histogram to a crystal, from ADC value to keV, time offsets.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/energy_bins.hpp"
#include "config/scanner/scanner.hpp"

namespace petacq::config {

struct Calibration {
    /// [bdm][du][x + y * position_size]: a value of crystals_per_du() or more means outside any crystal. The
    /// table in a file has one byte for each, unless has_wide_positions(); then no value is above 255.
    std::vector<std::uint16_t> position_table;
    /// [bdm][du][local crystal][bin]: keV per ADC count; finite, not negative.
    std::vector<float> energy_factor;
    std::uint32_t bins = 0;
    /// [crystal]: ticks added to the raw time; empty: none.
    std::vector<std::int32_t> time_offset;
    std::string sha256;  ///< of the file, lower-case hex; empty without a file
    /// How it was made, by name: text attributes of the file.
    std::map<std::string, std::string> origin;

    /// The time resolution of a pair (FWHM) that petcal derive time measured: the text attribute of that
    /// name. Absent: not stated.
    [[nodiscard]] std::optional<double> coincidence_fwhm_ps() const;
};

/// Whether an entry of the position table needs two bytes: a unit has more than 255 crystals. With 256, one
/// byte does for a ring in which no position is outside.
inline bool has_wide_positions(const Geometry& geometry) {
    return geometry.crystals_per_du() > (geometry.is_ring() ? 256U : 255U);
}
/// The value that tables get for positions outside any crystal of a unit. With 256 crystals of one byte it
/// names a crystal, as every byte does: then no position is outside.
inline std::uint16_t outside_crystals(const Geometry& geometry) {
    return has_wide_positions(geometry) ? 65'535 : 255;
}

/// Reads an HDF5 calibration (docs/reference/configuration.md) and checks its shapes and values against the
/// scanner. Throws config::Error naming the file, the data set, the expected and the found shape or type.
Calibration load_calibration(const std::filesystem::path& file, const Geometry& geometry);
/// Writes one, replacing the file as a whole: at any time, power cuts included, it has its previous content
/// or all of the calibration. Throws config::Error when the shapes or values are wrong, IoError when the file
/// cannot be written; what was there before is then still there unless only the directory could not be
/// synced.
void save_calibration(const std::filesystem::path& file, const Geometry& geometry,
                      const Calibration& calibration);
/// Checks shapes and values. Throws config::Error.
void check_calibration(const Geometry& geometry, const Calibration& calibration);
/// SHA-256 of a file, lower-case hex. Throws config::Error when it cannot be read.
std::string sha256_of_file(const std::filesystem::path& file);

}  // namespace petacq::config
