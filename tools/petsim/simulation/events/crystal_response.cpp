#include "tools/petsim/simulation/events/crystal_response.hpp"

#include <cmath>

#include "config/base/constants.hpp"
#include "tools/petsim/physics/spectra.hpp"
#include "tools/petsim/simulation/base/options_check.hpp"

namespace petacq::sim {

namespace {

/// The sigma of an energy E is this times sqrt(E); `resolution`: FWHM / energy at 511 keV.
double energy_width(double resolution) {
    return resolution / config::fwhm_per_sigma * std::sqrt(annihilation_keV);
}

}  // namespace

CrystalResponse::CrystalResponse(const Options& options, const config::Scanner& scanner,
                                 const Detector* detector)
    : detector_(detector),
      ticks_per_mm_(1 / (config::light_mm_per_ps * 1e12 * (scanner.tick_ps * 1e-12))),
      time_sigma_(options.physics.time_resolution_ps / scanner.tick_ps / config::fwhm_per_sigma),
      energy_width_(energy_width(options.physics.energy_resolution)) {
    if (detector != nullptr) {
        best_ = 0;
        for (const TrueCrystal& c : detector->crystals)
            best_ = std::max(best_, double{c.efficiency});
        if (options.physics.efficiency * best_ > 1) {
            refuse("--efficiency", text(options.physics.efficiency),
                   "at most " + text(1 / best_) + " with the efficiencies of this detector");
        }
    }
    const double e = options.physics.efficiency * best_;
    efficiency_ = e;
    either_ = 1 - (1 - e) * (1 - e);
    both_given_either_ = either_ > 0 ? e * e / either_ : 0;
}

void CrystalResponse::detect(ChunkDraft& draft, const geometry::Entry& entry, double ticks, double energy,
                             const HitOrigin& origin) const {
    Random& random = draft.random;
    double width = energy_width_;
    if (detector_ != nullptr) width = energy_width(detector_->crystals[entry.crystal].energy_resolution);
    const double arrival = ticks + entry.distance_mm * ticks_per_mm_ + time_sigma_ * bounded_normal(random);
    const double measured = energy + width * std::sqrt(energy) * random.normal();
    draft.detect(entry.crystal, arrival, measured, origin);
}

}  // namespace petacq::sim
