#include "tools/petsim/physics/crystal_modules.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace petacq::sim {

CrystalModules::CrystalModules(const geometry::ModuleFinder& finder,
                               const std::vector<CrystalAttenuation>& layers)
    : finder_(finder) {
    std::vector<CrystalAttenuation> known;
    for (const CrystalAttenuation& layer : layers) {
        const auto found = std::find(known.begin(), known.end(), layer);
        material_of_layer_.push_back(static_cast<std::uint32_t>(found - known.begin()));
        if (found != known.end()) continue;
        known.push_back(layer);
        materials_.emplace_back(layer.per_cm, layer.photo_share);
    }
    std::size_t layer = 0;
    for (const config::ModuleType& type : finder.arrangement().types()) {
        std::vector<std::uint32_t>& materials = materials_of_type_.emplace_back();
        for (std::size_t end = layer + type.layers.size(); layer < end; ++layer) {
            const std::uint32_t material = material_of_layer_[layer];
            if (std::find(materials.begin(), materials.end(), material) == materials.end())
                materials.push_back(material);
        }
    }
}

CrystalModules::PathStep CrystalModules::advance(Ray& ray, double energy, double limit_mm,
                                                 Random& random) const {
    for (double at = 0;;) {
        const auto passage = finder_.next(ray.at, ray.direction, at);
        if (!passage || passage->enter() >= limit_mm) {
            if (std::isinf(limit_mm)) return {Reached::outside, {}, 0};
            ray.advance(limit_mm);
            return {Reached::limit, {}, limit_mm};
        }
        double strongest = 0;
        for (const std::uint32_t material : materials_of_type_[passage->type()])
            strongest = std::max(strongest, materials_[material].per_mm(energy));
        const double end = std::min(passage->leave(), limit_mm);
        for (double here = passage->enter();;) {
            here += random.exponential() / strongest;
            if (!(here < end)) break;
            const auto inside = finder_.crystal_at(*passage, here);
            if (!inside) continue;
            const double share = materials_[material_of_layer_[inside->layer]].per_mm(energy) / strongest;
            if (share < 1 && !random.chance(share)) continue;
            ray.advance(here);
            return {Reached::crystal, *inside, here};
        }
        at = passage->leave();
    }
}

}  // namespace petacq::sim
