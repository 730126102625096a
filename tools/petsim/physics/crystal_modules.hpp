// The way of a photon through the crystals of any arrangement of modules.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/geometry/module_finder.hpp"
#include "tools/petsim/physics/attenuation.hpp"
#include "tools/petsim/physics/ray.hpp"
#include "tools/petsim/random/random.hpp"

namespace petacq::sim {

/// Linear attenuation at 511 keV, and the photoelectric share of it.
struct CrystalAttenuation {
    double per_cm = 0;
    double photo_share = 0;
    bool operator==(const CrystalAttenuation&) const = default;
};

/// All crystals as boxes, each of the material of its layer, with their gaps. In the box of a module a free
/// path is drawn for the strongest of its materials; a collision is real with the share of the material that
/// is there, and none in a gap (E. R. Woodcock et al., ANL-7050, 1965). Thread-safe.
class CrystalModules {
  public:
    /// `layers`: of all layers of all types, type by type. The finder must outlive this.
    CrystalModules(const geometry::ModuleFinder& finder, const std::vector<CrystalAttenuation>& layers);

    enum class Reached : std::uint8_t {
        crystal,  ///< it interacts there
        limit,    ///< it has flown as far as it may
        outside,  ///< it will meet no crystal any more
    };
    struct PathStep {
        Reached reached;
        geometry::ModuleFinder::Inside inside;  ///< where it interacts
        double path_mm;                         ///< travelled; 0 if it leaves for outside
    };
    /// Takes a ray to its next interaction, but not further than `limit_mm`, which may be infinite.
    PathStep advance(Ray& ray, double energy, double limit_mm, Random& random) const;

    /// The chance that an interaction in a layer is photoelectric.
    [[nodiscard]] double photo_share(std::uint32_t layer, double energy) const {
        return materials_[material_of_layer_[layer]].photo_share(energy);
    }

  private:
    const geometry::ModuleFinder& finder_;
    std::vector<Attenuation> materials_;
    std::vector<std::uint32_t> material_of_layer_;
    std::vector<std::vector<std::uint32_t>> materials_of_type_;
};

}  // namespace petacq::sim
