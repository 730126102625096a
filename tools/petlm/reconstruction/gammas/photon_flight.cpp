#include "tools/petlm/reconstruction/gammas/photon_flight.hpp"

#include <algorithm>
#include <cmath>

#include "tools/petsim/physics/compton.hpp"

namespace petacq::gammas {
namespace {

constexpr std::size_t highest = 3000;  // keV
constexpr double absorbed_below = 20;  // keV, in the object

std::vector<double> accepted_by(const corrections::EnergyWindow& window) {
    std::vector<double> out;
    for (std::size_t energy = 0; energy <= highest; ++energy)
        out.push_back(window.accepted(static_cast<double>(energy)));
    return out;
}

}  // namespace

PhotonFlight::PhotonFlight(const GammaModel& model)
    : model_(model),
      object_(model.scanner, model.object),
      crystals_(model.scanner, model.crystals),
      in_pairs_(accepted_by(model.pairs)),
      in_gammas_(accepted_by(model.gammas)) {}

void PhotonFlight::follow(sim::Ray ray, double radians, double energy, sim::Random& random, InFlight& scratch,
                          std::vector<PhotonHit>& out) const {
    out.clear();
    if (!leave_object(ray, energy, random, scratch.way)) return;
    // Crystals stand still in the frame of the scanner.
    if (radians != 0) ray = {config::turned(ray.at, -radians), config::turned(ray.direction, -radians)};
    scratch.deposits.clear();
    crystals_.follow(ray, energy, random, scratch.deposits);
    if (scratch.deposits.size() == 0) return;
    crystals_.hits(scratch.deposits, scratch.hits);
    for (const corrections::CrystalHit& hit : scratch.hits) {
        const std::size_t cell = std::min(static_cast<std::size_t>(std::lround(hit.energy)), highest);
        const double relative =
            model_.relative.empty() ? 1 : static_cast<double>(model_.relative[hit.crystal]);
        out.push_back({hit.crystal, std::min(1.0, relative * in_pairs_[cell]),
                       std::min(1.0, relative * in_gammas_[cell])});
    }
}

/// Whether it comes out with an energy that matters.
bool PhotonFlight::leave_object(sim::Ray& ray, double& energy, sim::Random& random,
                                corrections::CoarseObject::Way& way) const {
    if (object_.empty()) return true;
    static const double at_511 = sim::klein_nishina_total(corrections::photopeak);
    for (;;) {
        object_.trace(ray, way);
        const double part = random.exponential() * at_511 / sim::klein_nishina_total(energy);
        if (part >= way.thickness()) return true;
        ray.advance(way.distance(part));
        const double cosine = sim::draw_compton_cosine(energy, random);
        energy *= sim::compton_share(energy, cosine);
        if (energy < absorbed_below) return false;
        ray.direction = sim::turned(ray.direction, cosine, sim::azimuth(random));
    }
}

}  // namespace petacq::gammas
