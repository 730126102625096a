#include "config/scanner/crystal_material.hpp"

#include <algorithm>
#include <vector>

#include "config/scanner/arrangement.hpp"

namespace petacq::config {

namespace {

CrystalMaterial stated(const std::string& name, std::optional<double> attenuation_per_cm) {
    CrystalMaterial material = *find_crystal_material(name);
    if (attenuation_per_cm) material.attenuation_per_cm = *attenuation_per_cm;
    return material;
}

}  // namespace

std::span<const CrystalMaterial> crystal_materials() {
    static const std::vector<CrystalMaterial> table = {
        {"BGO", 0.95, 0.40},   {"BaF2", 0.45, 0.18}, {"GAGG", 0.58, 0.18},
        {"GSO", 0.70, 0.25},   {"LSO", 0.87, 0.32},  {"LYSO", 0.83, 0.32},
        {"LaBr3", 0.47, 0.13}, {"LuAP", 0.95, 0.30}, {"NaI", 0.34, 0.17},
    };
    return table;
}

const CrystalMaterial* find_crystal_material(std::string_view name) {
    const auto table = crystal_materials();
    const auto found =
        std::find_if(table.begin(), table.end(), [&](const CrystalMaterial& m) { return m.name == name; });
    return found == table.end() ? nullptr : &*found;
}

bool contains_lutetium(std::string_view material) {
    return material == "LSO" || material == "LYSO" || material == "LuAP";
}

CrystalMaterial crystal_material(const Dimensions& dimensions) {
    return stated(dimensions.crystal_material, dimensions.crystal_attenuation_per_cm);
}

CrystalMaterial crystal_material(const CrystalLayer& layer) {
    return stated(layer.material, layer.attenuation_per_cm);
}

}  // namespace petacq::config
