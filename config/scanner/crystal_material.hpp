// The materials of crystals, and how strongly they attenuate photons of 511 keV.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "config/scanner/scanner.hpp"

namespace petacq::config {

struct CrystalLayer;

struct CrystalMaterial {
    std::string name;
    double attenuation_per_cm = 0;  ///< linear, at 511 keV
    double photo_share = 0;         ///< of the interactions at 511 keV, photoelectric
};

/// The table. Its values are those commonly quoted for PET detectors, to two digits. They come from no single
/// source, and sources differ by a few percent, for LYSO with its share of yttrium.
std::span<const CrystalMaterial> crystal_materials();
/// nullptr if the table does not have it.
const CrystalMaterial* find_crystal_material(std::string_view name);
/// Whether it contains lutetium, of which Lu-176 is a part.
bool contains_lutetium(std::string_view material);

/// The material of a scanner, or of a layer of its crystals. A coefficient that its description states
/// replaces that of the table.
CrystalMaterial crystal_material(const Dimensions& dimensions);
CrystalMaterial crystal_material(const CrystalLayer& layer);

}  // namespace petacq::config
