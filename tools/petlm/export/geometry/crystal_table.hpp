// Where the crystals of the records are, beside exports that hold no more than their numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "config/scanner/scanner.hpp"

namespace petacq::petlm {

struct CrystalEntry {
    std::uint32_t crystal = 0;
    config::CrystalPlace place{};  ///< of its front face
    double length_mm = 0;
    double y_mm = 0;  ///< its sizes
    double z_mm = 0;
    std::uint32_t module = 0;
    std::uint32_t layer = 0;
    std::uint32_t column = 0;
    std::uint32_t row = 0;
    std::uint32_t bdm = 0;
    std::uint32_t du = 0;
    std::uint32_t local = 0;
};

/// [crystal]. A ring has none: its crystals follow from formulas (docs/reference/geometry.md).
std::vector<CrystalEntry> crystal_table(const config::Scanner& scanner);
/// As CSV. Numbers read back to the same values.
void write_crystal_table(const std::filesystem::path& file, const std::vector<CrystalEntry>& table);
/// "pairs.crystals.csv" beside "pairs.csv".
std::filesystem::path crystals_beside(const std::filesystem::path& records);

}  // namespace petacq::petlm
