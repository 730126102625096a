#include "tools/petlm/reconstruction/corrections/crystal_hits.hpp"

#include <algorithm>
#include <cmath>

#include "tools/petsim/physics/compton.hpp"

namespace petacq::corrections {
namespace {

constexpr double absorbed_below = 20;  // keV

}  // namespace

Crystals::Crystals(const config::Scanner& scanner, const CrystalModel& model)
    : ring_(scanner),
      scatters_(model.scatters),
      of_unit_(scanner.geometry.crystals),
      in_ring_(scanner.geometry.crystals_in_ring()) {
    if (model.material) attenuation_.emplace(model.material->attenuation_per_cm, model.material->photo_share);
}

void Crystals::follow(sim::Ray ray, double energy, sim::Random& random, Deposits& deposits) const {
    if (!attenuation_) {
        if (const auto entry = ring_.finder().find(ray.at, ray.direction))
            leave(entry->crystal, energy, deposits);
        return;
    }
    for (bool in_bore = true;;) {
        if (in_bore && ring_.leave_bore(ray) < 0) return;
        const sim::CrystalStep step = ring_.advance(ray, attenuation_->per_mm(energy), random);
        if (step.reached == sim::Reached::outside) return;
        in_bore = step.reached == sim::Reached::bore;
        if (in_bore) continue;
        const double before = energy;
        energy = 0;
        if (scatters_ && !random.chance(attenuation_->photo_share(before))) {
            const double cosine = sim::draw_compton_cosine(before, random);
            energy = before * sim::compton_share(before, cosine);
            ray.direction = sim::turned(ray.direction, cosine, sim::azimuth(random));
            if (energy < absorbed_below) energy = 0;
        }
        leave(step.crystal, before - energy, deposits);
        if (!(energy > 0)) return;
    }
}

void Crystals::leave(std::uint32_t crystal, double energy, Deposits& deposits) const {
    const std::uint32_t ring = crystal / in_ring_;
    const std::uint32_t around = crystal % in_ring_;
    const std::uint32_t row = ring / of_unit_.z;
    const std::uint32_t column = around / of_unit_.y;
    auto& units = deposits.units_;
    auto unit = std::find_if(units.begin(), units.end(),
                             [&](const auto& u) { return u.row == row && u.column == column; });
    if (unit == units.end()) unit = units.insert(units.end(), {row, column, 0, 0, 0});
    unit->energy += energy;
    unit->along += energy * ring;
    unit->across += energy * around;
}

void Crystals::hits(const Deposits& deposits, std::vector<CrystalHit>& out) const {
    out.clear();
    for (const auto& unit : deposits.units_) {
        const auto ring = static_cast<std::uint32_t>(std::lround(unit.along / unit.energy));
        const auto around = static_cast<std::uint32_t>(std::lround(unit.across / unit.energy));
        out.push_back({ring * in_ring_ + around, unit.energy});
    }
}

}  // namespace petacq::corrections
