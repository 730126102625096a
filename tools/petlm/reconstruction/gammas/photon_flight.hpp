// Photons of any energy from the object into the crystals.
#pragma once

#include <vector>

#include "tools/petlm/reconstruction/corrections/coarse_object.hpp"
#include "tools/petlm/reconstruction/gammas/gamma_model.hpp"

namespace petacq::gammas {

/// What a photon leaves in a detector unit.
struct PhotonHit {
    std::uint32_t crystal = 0;
    double in_pairs = 0;   ///< chance that the window of the pairs accepts it
    double in_gammas = 0;  ///< likewise of the window of the gammas
};

/// Photons scatter in the object (Compton scatter on free electrons) as often as they do, and leave their
/// energy or a part of it in the crystals (corrections::Crystals). Thread-safe.
class PhotonFlight {
  public:
    explicit PhotonFlight(const GammaModel& model);

    struct InFlight {
        corrections::CoarseObject::Way way;
        corrections::Crystals::Deposits deposits;
        std::vector<corrections::CrystalHit> hits;
    };
    /// Energies up to 3000 keV. The hits of one photon, in a scanner at this angle; their chances are those
    /// of crystals of mean efficiency, times the relative one.
    void follow(sim::Ray ray, double radians, double energy, sim::Random& random, InFlight& scratch,
                std::vector<PhotonHit>& out) const;

  private:
    bool leave_object(sim::Ray& ray, double& energy, sim::Random& random,
                      corrections::CoarseObject::Way& way) const;

    const GammaModel& model_;
    corrections::CoarseObject object_;
    corrections::Crystals crystals_;
    std::vector<double> in_pairs_;   // [keV]
    std::vector<double> in_gammas_;  // [keV]
};

}  // namespace petacq::gammas
