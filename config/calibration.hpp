// The calibration: from a position in the flood histogram to a crystal, from ADC value to keV, time offsets.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "config/scanner.hpp"

namespace petacq::config {

/// ADC values per energy bin of the factor table (spec: min(adc / 10, bins - 1)).
inline constexpr std::uint32_t adc_per_bin = 10;
/// A 16-bit ADC value reaches no bin beyond these.
inline constexpr std::uint32_t max_bins = 65535 / adc_per_bin + 1;

struct Calibration {
    /// [bdm][du][x + y * position_size]: a value of crystals_per_du() or more means outside any crystal.
    std::vector<std::uint8_t> position_table;
    /// [bdm][du][local crystal][bin]: keV per ADC count; finite, not negative.
    std::vector<float> energy_factor;
    std::uint32_t bins = 0;
    /// [crystal]: ticks added to the raw time; empty: none.
    std::vector<std::int32_t> time_offset;
    std::string sha256;  ///< of the file, lower-case hex; empty without a file
};

/// Reads an HDF5 calibration (docs/reference/configuration.md) and checks its shapes and values against the
/// scanner. Throws config::Error naming the file, the data set, the expected and the found shape or type. The
/// HDF5 library is not thread-safe: one thread at a time reads or writes calibrations.
Calibration load_calibration(const std::filesystem::path& file, const Geometry& geometry);
/// Writes one, replacing the file as a whole. Throws config::Error when the shapes or values are wrong,
/// IoError when the file cannot be written; what was there before is then still there.
void save_calibration(const std::filesystem::path& file, const Geometry& geometry,
                      const Calibration& calibration);
/// Checks shapes and values. Throws config::Error.
void check_calibration(const Geometry& geometry, const Calibration& calibration);
/// SHA-256 of a file, lower-case hex. Throws config::Error when it cannot be read.
std::string sha256_of_file(const std::filesystem::path& file);

}  // namespace petacq::config
