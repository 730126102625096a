// Follows photons through the object and the crystals, from scatter to scatter.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "tools/geometry/hit_finder.hpp"
#include "tools/petsim/physics/attenuation.hpp"
#include "tools/petsim/physics/crystal_modules.hpp"
#include "tools/petsim/physics/crystal_ring.hpp"
#include "tools/petsim/physics/ray.hpp"
#include "tools/petsim/random/random.hpp"
#include "tools/petsim/simulation/base/chunk.hpp"
#include "tools/petsim/simulation/base/options.hpp"

namespace petacq::sim {

struct Photon {
    Ray ray;
    double energy = 0;   ///< keV
    double path_mm = 0;  ///< flown so far
    std::uint8_t object_scatters = 0;
};

/// Thread-safe.
class Tracker {
  public:
    /// The options must have passed check().
    Tracker(const config::Scanner& scanner, const Options& options);
    Tracker(const Tracker&) = delete;
    Tracker& operator=(const Tracker&) = delete;

    /// Follows a photon that starts among the crystals or in one until it is absorbed or escapes, and
    /// adds what it leaves to `deposits`, to that of the same crystal if there is one. `object_shift`:
    /// displacement of the object.
    void follow(Photon& photon, const Vector3& object_shift, Random& random,
                std::vector<Deposit>& deposits) const;

  private:
    void follow_in_ring(Photon& photon, const Vector3& object_shift, Random& random,
                        std::vector<Deposit>& deposits) const;
    void follow_in_modules(Photon& photon, const Vector3& object_shift, Random& random,
                           std::vector<Deposit>& deposits) const;
    [[nodiscard]] std::optional<Chord> object_ahead(const Photon& photon, const Vector3& object_shift) const;
    bool pass_object(Photon& photon, const Vector3& object_shift, Random& random) const;
    bool interact(Photon& photon, std::uint32_t crystal, double photo_share, Random& random,
                  std::vector<Deposit>& deposits) const;

    geometry::HitFinder finder_;
    CrystalModel model_;
    // Of the short form.
    std::optional<CrystalRing> ring_;
    std::optional<Attenuation> crystal_;
    // Of the long form.
    std::optional<CrystalModules> modules_;
    std::optional<ScatteringObject> object_;
    Attenuation material_;  ///< of the object
};

}  // namespace petacq::sim
