#include "tools/petsim/simulation/events/crystal_response.hpp"

#include <algorithm>
#include <cmath>

#include "config/base/constants.hpp"
#include "config/scanner/arrangement.hpp"
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
      resolutions_({{options.physics.time_resolution_ps / scanner.tick_ps / config::fwhm_per_sigma,
                     energy_width(options.physics.energy_resolution)}}) {
    if (scanner.arrangement) add_types(*scanner.arrangement, scanner.tick_ps);
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

void CrystalResponse::add_types(const config::Arrangement& arrangement, double tick_ps) {
    const auto states = [](const config::ModuleType& t) {
        return t.time_resolution_ps || t.energy_resolution;
    };
    if (std::none_of(arrangement.types().begin(), arrangement.types().end(), states)) return;
    for (const config::ModuleType& type : arrangement.types()) {
        Resolution resolution = resolutions_.front();
        if (type.time_resolution_ps)
            resolution.time_sigma = *type.time_resolution_ps / tick_ps / config::fwhm_per_sigma;
        if (type.energy_resolution) resolution.energy_width = energy_width(*type.energy_resolution);
        resolutions_.push_back(resolution);
    }
    for (const config::Module& module : arrangement.modules()) {
        resolution_of_crystal_.insert(resolution_of_crystal_.end(),
                                      arrangement.type_of(module).crystal_count(),
                                      static_cast<std::uint16_t>(module.type + 1));
    }
}

double CrystalResponse::furthest_ticks() const {
    double most = 0;
    for (const Resolution& resolution : resolutions_)
        most = std::max(most, resolution.time_sigma);
    return far_out * most;
}

void CrystalResponse::detect(ChunkDraft& draft, const geometry::Entry& entry, double ticks, double energy,
                             const HitOrigin& origin) const {
    Random& random = draft.random;
    const Resolution& resolution =
        resolutions_[resolution_of_crystal_.empty() ? 0 : resolution_of_crystal_[entry.crystal]];
    double width = resolution.energy_width;
    if (detector_ != nullptr) width = energy_width(detector_->crystals[entry.crystal].energy_resolution);
    const double arrival =
        ticks + entry.distance_mm * ticks_per_mm_ + resolution.time_sigma * bounded_normal(random);
    const double measured = energy + width * std::sqrt(energy) * random.normal();
    draft.detect(entry.crystal, arrival, measured, origin);
}

}  // namespace petacq::sim
