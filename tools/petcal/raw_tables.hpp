// Raw tables of existing scanners: the arrays of a calibration, row-major, little-endian, no header.
#pragma once

#include <filesystem>

#include "config/calibration.hpp"
#include "config/scanner/scanner.hpp"

namespace petacq::petcal {

struct RawFiles {
    std::filesystem::path position_table;
    std::filesystem::path energy_factor;
    std::filesystem::path time_offset;  ///< empty: none
    std::uint32_t bins = 0;
};

/// Throws config::Error naming the file with the expected and the found size, config::IoError when a file
/// cannot be read.
config::Calibration read_raw_tables(const config::Geometry& geometry, const RawFiles& files);

}  // namespace petacq::petcal
