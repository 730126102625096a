// Follows photons through the object and the crystals, from scatter to scatter.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "config/scanner.hpp"
#include "tools/petsim/physics/attenuation.hpp"
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

    /// Follows a photon that starts inside the ring or in a crystal until it is absorbed or escapes, and
    /// adds what it leaves to `deposits`, to that of the same crystal if there is one. `object_z_mm`:
    /// displacement of the object.
    void follow(Photon& photon, double object_z_mm, Random& random, std::vector<Deposit>& deposits) const;

  private:
    bool pass_object(Photon& photon, double object_z_mm, Random& random) const;
    bool interact(Photon& photon, std::uint32_t crystal, Random& random,
                  std::vector<Deposit>& deposits) const;

    CrystalRing ring_;
    CrystalModel model_;
    Attenuation crystal_;
    std::optional<ScatteringObject> object_;
    Attenuation material_;  ///< of the object
};

}  // namespace petacq::sim
