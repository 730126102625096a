#include "tools/petlm/reconstruction/corrections/crystal_hits.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "config/scanner/crystal_material.hpp"
#include "tools/petlm/reconstruction/corrections/module_losses.hpp"
#include "tools/petsim/physics/compton.hpp"

namespace petacq::corrections {
namespace {

constexpr double absorbed_below = 20;  // keV
constexpr double largest_spread = 0.3;
constexpr double least_factor = 0.1;
constexpr double half_crystal = 0.49;  // so that all of its light is found in it

/// Of all layers of all types.
std::vector<sim::CrystalAttenuation> attenuations_of(const config::Arrangement& arrangement) {
    std::vector<sim::CrystalAttenuation> out;
    for (const config::ModuleType& type : arrangement.types()) {
        for (const config::CrystalLayer& layer : type.layers) {
            const config::CrystalMaterial material = config::crystal_material(layer);
            out.push_back({material.attenuation_per_cm, material.photo_share});
        }
    }
    return out;
}

std::uint32_t nearest(const config::CrystalRow& row, double place) {
    const auto above = std::lower_bound(row.centres.begin(), row.centres.end(), place);
    const auto index = static_cast<std::uint32_t>(above - row.centres.begin());
    if (index == 0) return 0;
    if (index == row.count()) return index - 1;
    return row.centres[index] - place < place - row.centres[index - 1] ? index : index - 1;
}

}  // namespace

CrystalModel crystal_model(const nlohmann::json& run, const config::DepthOfInteraction& depth) {
    CrystalModel out;
    out.deep = depth.typical_mm() > 0;
    if (!run.is_object()) return out;
    const auto stated = run.value("energy_factor_spread", nlohmann::json());
    if (stated.is_number()) out.factor_spread = std::clamp(stated.get<double>(), 0.0, largest_spread);
    return out;
}

Crystals::Crystals(const config::Scanner& scanner, const CrystalModel& model)
    : finder_(scanner), deep_(model.deep), scatters_(model.scatters), of_unit_(scanner.geometry.crystals) {
    if (scanner.is_ring()) {
        ring_.emplace(scanner);
        const config::CrystalMaterial material = config::crystal_material(scanner.dimensions);
        attenuation_.emplace(material.attenuation_per_cm, material.photo_share);
        in_ring_ = scanner.geometry.crystals_in_ring();
    } else {
        arrangement_ = scanner.arrangement;
        modules_.emplace(*finder_.modules(), attenuations_of(*arrangement_));
        units_ = petlm::units_of_crystals(scanner.geometry);
    }
    if (!(model.factor_spread > 0)) return;
    sim::Random random(1, sim::Purpose::calibration, 0);
    factors_.resize(scanner.geometry.crystal_count());
    for (float& factor : factors_)
        factor = static_cast<float>(std::max(least_factor, 1 + model.factor_spread * random.normal()));
}

void Crystals::follow(const sim::Ray& ray, double energy, sim::Random& random, Deposits& deposits) const {
    if (!deep_) {
        if (const auto entry = finder_.find(ray.at, ray.direction))
            leave(entry->crystal, energy, random, deposits);
    } else if (ring_) {
        follow_in_ring(ray, energy, random, deposits);
    } else {
        follow_in_modules(ray, energy, random, deposits);
    }
}

void Crystals::follow_in_ring(sim::Ray ray, double energy, sim::Random& random, Deposits& deposits) const {
    for (bool in_bore = true;;) {
        if (in_bore && ring_->leave_bore(ray) < 0) return;
        const sim::CrystalStep step = ring_->advance(ray, attenuation_->per_mm(energy), random);
        if (step.reached == sim::Reached::outside) return;
        in_bore = step.reached == sim::Reached::bore;
        if (in_bore) continue;
        energy = interact(step.crystal, attenuation_->photo_share(energy), energy, ray, random, deposits);
        if (!(energy > 0)) return;
    }
}

void Crystals::follow_in_modules(sim::Ray ray, double energy, sim::Random& random, Deposits& deposits) const {
    while (energy > 0) {
        const sim::CrystalModules::PathStep step =
            modules_->advance(ray, energy, std::numeric_limits<double>::infinity(), random);
        if (step.reached == sim::CrystalModules::Reached::outside) return;
        const double photo_share = modules_->photo_share(step.inside.layer, energy);
        energy = interact(step.inside.crystal, photo_share, energy, ray, random, deposits);
    }
}

double Crystals::interact(std::uint32_t crystal, double photo_share, double energy, sim::Ray& ray,
                          sim::Random& random, Deposits& deposits) const {
    double after = 0;
    if (scatters_ && !random.chance(photo_share)) {
        const double cosine = sim::draw_compton_cosine(energy, random);
        after = energy * sim::compton_share(energy, cosine);
        ray.direction = sim::turned(ray.direction, cosine, sim::azimuth(random));
        if (after < absorbed_below) after = 0;
    }
    leave(crystal, energy - after, random, deposits);
    return after;
}

void Crystals::leave(std::uint32_t crystal, double energy, sim::Random& random, Deposits& deposits) const {
    std::uint32_t row = 0;
    std::uint32_t column = 0;
    double along = 0;
    double across = 0;
    double along_size = 1;
    double across_size = 1;
    if (ring_) {
        const std::uint32_t ring = crystal / in_ring_;
        const std::uint32_t around = crystal % in_ring_;
        row = ring / of_unit_.z;
        column = around / of_unit_.y;
        along = ring;
        across = around;
    } else {
        const config::CrystalAddress at = arrangement_->address(crystal);
        const config::CrystalLayer& layer = arrangement_->layer_of(crystal);
        column = units_[crystal];
        along = layer.z.centres[at.row];
        across = layer.y.centres[at.column];
        along_size = layer.z.sizes[at.row];
        across_size = layer.y.sizes[at.column];
    }
    if (!factors_.empty()) {
        along += half_crystal * along_size * random.symmetric();
        across += half_crystal * across_size * random.symmetric();
    }
    deposits.add(
        {row, column, energy, energy / factor(crystal), energy * along, energy * across, crystal, energy});
}

void Crystals::Deposits::add(const InUnit& part) {
    const auto unit = std::find_if(units_.begin(), units_.end(), [&](const InUnit& u) {
        return u.row == part.row && u.column == part.column;
    });
    if (unit == units_.end()) {
        units_.push_back(part);
        return;
    }
    unit->energy += part.energy;
    unit->light += part.light;
    unit->along += part.along;
    unit->across += part.across;
    if (part.of_strongest > unit->of_strongest) {
        unit->strongest = part.strongest;
        unit->of_strongest = part.of_strongest;
    }
}

void Crystals::Deposits::add(const Deposits& others) {
    for (const InUnit& part : others.units_)
        add(part);
}

std::uint32_t Crystals::found_in(const Deposits::InUnit& unit) const {
    if (ring_) {
        const auto ring = static_cast<std::uint32_t>(std::lround(unit.along / unit.energy));
        const auto around = static_cast<std::uint32_t>(std::lround(unit.across / unit.energy));
        return ring * in_ring_ + around;
    }
    config::CrystalAddress at = arrangement_->address(unit.strongest);
    const config::CrystalLayer& layer = arrangement_->layer_of(unit.strongest);
    at.row = nearest(layer.z, unit.along / unit.energy);
    at.column = nearest(layer.y, unit.across / unit.energy);
    const std::uint32_t crystal = arrangement_->crystal(at);
    return units_[crystal] == unit.column ? crystal : unit.strongest;
}

void Crystals::hits(const Deposits& deposits, std::vector<CrystalHit>& out) const {
    out.clear();
    for (const auto& unit : deposits.units_) {
        const std::uint32_t crystal = found_in(unit);
        out.push_back({crystal, factors_.empty() ? unit.energy : unit.light * factor(crystal)});
    }
}

}  // namespace petacq::corrections
