// The types of modules of a PETSIRD file: all crystals of one are alike. A module with crystals of several
// kinds (layers of different lengths, say) is one module of each of several types, at the same place.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "tools/petlm/export/petsird/coding.hpp"

namespace petacq::petsird {

struct ModuleType {
    std::array<double, 3> box_mm{};       ///< a crystal: its length, its sizes along y and z
    std::optional<std::string> material;  ///< absent: not known
    /// [element] in a module, which faces along x: the corner of lowest x, y and z.
    std::vector<config::Vector3> corner_mm;
    std::vector<Matrix> matrices;              ///< [module]
    std::vector<std::uint32_t> crystals;       ///< [module][element]
    std::optional<double> time_resolution_ps;  ///< FWHM of one single
    std::optional<double> energy_resolution;   ///< FWHM at 511 keV, a fraction

    [[nodiscard]] std::size_t elements() const { return corner_mm.size(); }
    [[nodiscard]] std::size_t modules() const { return matrices.size(); }
    [[nodiscard]] std::uint32_t crystal(std::size_t module, std::size_t element) const {
        return crystals[module * elements() + element];
    }
};

std::vector<ModuleType> types_of(const config::Scanner& scanner);

/// Turned about z, and moved along it.
Matrix turned_about_z(double radians, double z_mm = 0);

}  // namespace petacq::petsird
