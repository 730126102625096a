#include "tools/petsim/simulation/events/tracking.hpp"

#include <algorithm>
#include <limits>

#include "config/scanner/arrangement.hpp"
#include "config/scanner/crystal_material.hpp"
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

/// Of all layers of all types. What the options state holds for all of them.
std::vector<CrystalAttenuation> attenuations_of(const config::Arrangement& arrangement,
                                                const Crystals& crystals) {
    std::vector<CrystalAttenuation> layers;
    for (const config::ModuleType& type : arrangement.types()) {
        for (const config::CrystalLayer& layer : type.layers) {
            const config::CrystalMaterial material = config::crystal_material(layer);
            layers.push_back({crystals.attenuation_per_cm.value_or(material.attenuation_per_cm),
                              crystals.photo_share.value_or(material.photo_share)});
        }
    }
    return layers;
}

}  // namespace

Tracker::Tracker(const config::Scanner& scanner, const Options& options)
    : finder_(scanner),
      model_(options.crystals.model),
      object_(options.object),
      material_(options.object ? options.object->attenuation_per_cm : 0.0, 0.0) {
    if (scanner.is_ring()) {
        ring_.emplace(scanner);
        crystal_ = attenuation_of(options.crystals.of(scanner));
    } else {
        modules_.emplace(*finder_.modules(), attenuations_of(*scanner.arrangement, options.crystals));
    }
}

void Tracker::follow(Photon& photon, const Vector3& object_shift, Random& random,
                     std::vector<Deposit>& deposits) const {
    if (model_ == CrystalModel::surface) {
        if (!pass_object(photon, object_shift, random)) return;
        if (const auto entry = finder_.find(photon.ray.at, photon.ray.direction))
            deposit(deposits, entry->crystal, photon.energy, photon.path_mm + entry->distance_mm,
                    photon.object_scatters);
    } else if (ring_) {
        follow_in_ring(photon, object_shift, random, deposits);
    } else {
        follow_in_modules(photon, object_shift, random, deposits);
    }
}

void Tracker::follow_in_ring(Photon& photon, const Vector3& object_shift, Random& random,
                             std::vector<Deposit>& deposits) const {
    for (bool in_bore = ring_->in_bore(photon.ray.at);;) {
        if (in_bore) {
            if (!pass_object(photon, object_shift, random)) return;
            const double distance = ring_->leave_bore(photon.ray);
            if (distance < 0) return;
            photon.path_mm += distance;
        }
        const CrystalStep step = ring_->advance(photon.ray, crystal_->per_mm(photon.energy), random);
        photon.path_mm += step.path_mm;
        if (step.reached == Reached::outside) return;
        in_bore = step.reached == Reached::bore;
        if (in_bore) continue;
        if (!interact(photon, step.crystal, crystal_->photo_share(photon.energy), random, deposits)) return;
    }
}

void Tracker::follow_in_modules(Photon& photon, const Vector3& object_shift, Random& random,
                                std::vector<Deposit>& deposits) const {
    constexpr double rounding_mm = 1e-9;
    for (;;) {
        const auto ahead = object_ahead(photon, object_shift);
        const double limit = ahead ? ahead->from : std::numeric_limits<double>::infinity();
        const CrystalModules::PathStep step = modules_->advance(photon.ray, photon.energy, limit, random);
        photon.path_mm += step.path_mm;
        if (step.reached == CrystalModules::Reached::outside) return;
        if (step.reached == CrystalModules::Reached::crystal) {
            const double share = modules_->photo_share(step.inside.layer, photon.energy);
            if (!interact(photon, step.inside.crystal, share, random, deposits)) return;
            continue;
        }
        if (!pass_object(photon, object_shift, random)) return;
        if (const auto rest = object_ahead(photon, object_shift)) {
            photon.ray.advance(rest->to + rounding_mm);
            photon.path_mm += rest->to;
        }
    }
}

std::optional<Chord> Tracker::object_ahead(const Photon& photon, const Vector3& object_shift) const {
    if (!object_) return std::nullopt;
    Cylinder shape = object_->shape;
    for (std::size_t axis = 0; axis < 3; ++axis)
        shape.at[axis] += object_shift[axis];
    return chord(shape, photon.ray);
}

/// Whether the photon leaves the object, or misses it.
bool Tracker::pass_object(Photon& photon, const Vector3& object_shift, Random& random) const {
    while (const auto inside = object_ahead(photon, object_shift)) {
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
bool Tracker::interact(Photon& photon, std::uint32_t crystal, double photo_share, Random& random,
                       std::vector<Deposit>& deposits) const {
    const bool absorbed = model_ == CrystalModel::depth || random.chance(photo_share);
    double energy = absorbed ? photon.energy : scatter(photon, random);
    const bool ends = absorbed || photon.energy < min_photon_kev;
    if (ends && !absorbed) energy += photon.energy;
    deposit(deposits, crystal, energy, photon.path_mm, photon.object_scatters);
    return !ends;
}

}  // namespace petacq::sim
