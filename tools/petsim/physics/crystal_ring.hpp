// The way of a photon through the crystals of a ring of equal modules.
#pragma once

#include <cstdint>

#include "config/scanner/scanner.hpp"
#include "tools/geometry/ring_finder.hpp"
#include "tools/petsim/physics/ray.hpp"
#include "tools/petsim/random/random.hpp"

namespace petacq::sim {

/// Where a photon is after a step.
enum class Reached : std::uint8_t {
    crystal,  ///< it interacts there
    bore,     ///< at the surface of the bore, the cylinder that touches the front faces, on its way in
    outside,  ///< it will meet no crystal any more
};

struct CrystalStep {
    Reached reached;
    std::uint32_t crystal;  ///< where it interacts
    double path_mm;         ///< travelled
};

/// All crystals of a scanner of the short form as boxes of one material, with their gaps. A free path is
/// drawn for solid material; a collision in a gap is none, and the photon flies on (E. R. Woodcock et al.,
/// ANL-7050, 1965). Thread-safe.
class CrystalRing {
  public:
    explicit CrystalRing(const config::Scanner& scanner);

    [[nodiscard]] bool in_bore(const Vector3& point) const {
        return point[0] * point[0] + point[1] * point[1] < inner_ * inner_;
    }
    /// Takes a ray from inside the bore, or from its surface inwards, to where it leaves it. The distance;
    /// negative if it never does.
    double leave_bore(Ray& ray) const;
    /// Takes a ray from outside the bore to its next interaction, to the bore, or beyond all crystals.
    CrystalStep advance(Ray& ray, double attenuation_per_mm, Random& random) const;

    [[nodiscard]] const geometry::RingFinder& finder() const { return finder_; }

  private:
    geometry::RingFinder finder_;
    double inner_;  ///< radii
    double outer_;
};

}  // namespace petacq::sim
