#include "tools/petsim/simulation/events/tracking.hpp"

#include <algorithm>

#include "tools/petsim/physics/compton.hpp"

namespace petacq::sim {

namespace {

void deposit(std::vector<Deposit>& deposits, std::uint32_t crystal, double energy, double path_mm,
             std::uint8_t object_scatters) {
    const auto found = std::find_if(deposits.begin(), deposits.end(),
                                    [&](const Deposit& d) { return d.crystal == crystal; });
    if (found != deposits.end()) {
        found->energy += energy;
    } else {
        deposits.push_back({crystal, energy, path_mm, object_scatters});
    }
}

/// The energy that it loses.
double scatter(Photon& photon, Random& random) {
    const double cosine = draw_compton_cosine(photon.energy, random);
    const double before = photon.energy;
    photon.energy *= compton_share(before, cosine);
    photon.ray.direction = turned(photon.ray.direction, cosine, azimuth(random));
    return before - photon.energy;
}

Attenuation attenuation_of(const Crystals& crystals) {
    return {*crystals.attenuation_per_cm, *crystals.photo_share};
}

}  // namespace

Tracker::Tracker(const config::Scanner& scanner, const Options& options)
    : ring_(scanner),
      model_(options.crystals.model),
      crystal_(attenuation_of(options.crystals.of(scanner))),
      object_(options.object),
      material_(options.object ? options.object->attenuation_per_cm : 0.0, 0.0) {}

void Tracker::follow(Photon& photon, double object_z_mm, Random& random,
                     std::vector<Deposit>& deposits) const {
    if (model_ == CrystalModel::surface) {
        if (!pass_object(photon, object_z_mm, random)) return;
        if (const auto entry = ring_.finder().find(photon.ray.at, photon.ray.direction))
            deposit(deposits, entry->crystal, photon.energy, photon.path_mm + entry->distance_mm,
                    photon.object_scatters);
        return;
    }
    for (bool in_bore = ring_.in_bore(photon.ray.at);;) {
        if (in_bore) {
            if (!pass_object(photon, object_z_mm, random)) return;
            const double distance = ring_.leave_bore(photon.ray);
            if (distance < 0) return;
            photon.path_mm += distance;
        }
        const CrystalStep step = ring_.advance(photon.ray, crystal_.per_mm(photon.energy), random);
        photon.path_mm += step.path_mm;
        if (step.reached == Reached::outside) return;
        in_bore = step.reached == Reached::bore;
        if (!in_bore && !interact(photon, step.crystal, random, deposits)) return;
    }
}

/// Whether the photon leaves the object, or misses it.
bool Tracker::pass_object(Photon& photon, double object_z_mm, Random& random) const {
    if (!object_) return true;
    Cylinder shape = object_->shape;
    shape.at[2] += object_z_mm;
    while (const auto inside = chord(shape, photon.ray)) {
        const double way = inside->from + random.exponential() / material_.per_mm(photon.energy);
        if (!(way < inside->to)) return true;
        photon.ray.advance(way);
        photon.path_mm += way;
        scatter(photon, random);
        if (photon.object_scatters < UINT8_MAX) ++photon.object_scatters;
        if (photon.energy < min_photon_kev) return false;
    }
    return true;
}

/// Whether the photon flies on.
bool Tracker::interact(Photon& photon, std::uint32_t crystal, Random& random,
                       std::vector<Deposit>& deposits) const {
    const bool absorbed = model_ == CrystalModel::depth || random.chance(crystal_.photo_share(photon.energy));
    double energy = absorbed ? photon.energy : scatter(photon, random);
    const bool ends = absorbed || photon.energy < min_photon_kev;
    if (ends && !absorbed) energy += photon.energy;
    deposit(deposits, crystal, energy, photon.path_mm, photon.object_scatters);
    return !ends;
}

}  // namespace petacq::sim
