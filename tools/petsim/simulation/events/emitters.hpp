// The sources of activity: how much of it is followed, and where decays happen.
#pragma once

#include <vector>

#include "tools/geometry/hit_finder.hpp"
#include "tools/petsim/physics/ray.hpp"
#include "tools/petsim/random/random.hpp"
#include "tools/petsim/simulation/base/movement.hpp"
#include "tools/petsim/simulation/base/options.hpp"
#include "tools/petsim/simulation/events/crystal_response.hpp"

namespace petacq::sim {

/// A source with its geometric limit: photons with |cos| to the axis above cosine_limit miss the scanner
/// from any point of the source.
struct Emitter {
    ActivitySource source;
    double cosine_limit = 1;
    double detectable = 0;  ///< share of decays of which a photon would be detected if all entered crystals
    double scatter = 0;     ///< share of decays of which a photon scatters where they happen
    double positrons = 1;   ///< of a decay; 1 for one with a single photon instead
    bool cascade = false;   ///< prompt gammas may come with each decay, so that all decays are followed
    /// How many of these decays are followed.
    [[nodiscard]] double followed(double decays) const {
        return decays * detectable * ((1 - scatter) * cosine_limit + scatter);
    }
};

class Emitters {
  public:
    /// What is passed must outlive it, but for the finder and the response.
    Emitters(const Options& options, const Movement& movement, const geometry::HitFinder& finder,
             const CrystalResponse& response);

    [[nodiscard]] const std::vector<Emitter>& all() const { return emitters_; }
    /// Mean number of decays per second between two times.
    [[nodiscard]] double activity(const ActivitySource& source, double from_s, double to_s) const;
    [[nodiscard]] double angle_sigma() const { return angle_sigma_; }
    /// Where a decay happens; `ticks` since decays begin.
    [[nodiscard]] Vector3 decay_point(const ActivitySource& source, double ticks, Random& random) const;
    /// Where its positron annihilates.
    [[nodiscard]] Vector3 annihilation_point(Vector3 decay, Random& random) const;

  private:
    void add_nuclide(const ActivitySource& source, const CrystalResponse& response, double limit,
                     double scatter);
    [[nodiscard]] double cosine_limit(const ActivitySource& source, const geometry::HitFinder& finder) const;

    const Options& options_;
    const Movement& movement_;
    double range_sigma_;  ///< mm, along each axis
    double angle_sigma_;  ///< of noncollinearity, along each of two directions
    std::vector<Emitter> emitters_;
};

}  // namespace petacq::sim
