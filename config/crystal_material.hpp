// What crystals are made of, and how far photons of 511 keV fly in it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "config/scanner.hpp"

namespace petacq::config {

struct CrystalMaterial {
    std::string name;
    double attenuation_per_cm = 0;  ///< linear, at 511 keV
    double photo_share = 0;         ///< of the interactions at 511 keV, photoelectric
};

/// The table. Values are those that reviews of PET detectors quote (C. L. Melcher, J. Nucl. Med. 41 (2000)
/// 1051; J. L. Humm, A. Rosenfeld, A. Del Guerra, Eur. J. Nucl. Med. 30 (2003) 1574; T. K. Lewellen, Phys.
/// Med. Biol. 53 (2008) R287), to two digits; sources differ by a few percent, for LYSO with its share of
/// yttrium.
std::span<const CrystalMaterial> crystal_materials();
/// nullptr if the table does not have it.
const CrystalMaterial* find_crystal_material(std::string_view name);

/// Of a scanner: that of the table, with the coefficient that the description states, if it states one.
CrystalMaterial crystal_material(const Dimensions& dimensions);

}  // namespace petacq::config
