#include "tools/petlm/reconstruction/gammas/crystal_resolution.hpp"

#include <cmath>
#include <cstddef>
#include <vector>

#include "config/base/constants.hpp"
#include "tools/petlm/reconstruction/corrections/energy_window.hpp"
#include "tools/petsim/random/random.hpp"

namespace petacq::gammas {
namespace {

constexpr std::size_t photons = 200'000;
constexpr int draws = 10;  // of what is found of one hit: most hits have 511 keV
constexpr std::size_t enough_energies = 10'000;
constexpr double least_energy = 300;  // keV; what is found near the photopeak has more
constexpr double least_resolution = 0.01;
constexpr int halvings = 10;

struct PeakEnergy {
    double energy;
    double normal;  ///< the same for all resolutions, so that only these make a difference
};

std::vector<PeakEnergy> energies_found(const config::Scanner& scanner,
                                       const corrections::CrystalModel& model) {
    const corrections::Crystals crystals(scanner, model);
    sim::Random random(1, sim::Purpose::events, 0);
    corrections::Crystals::Deposits deposits;
    std::vector<corrections::CrystalHit> hits;
    std::vector<PeakEnergy> out;
    for (std::size_t i = 0; i < photons; ++i) {
        deposits.clear();
        crystals.follow({{0, 0, 0}, sim::isotropic(random)}, corrections::photopeak, random, deposits);
        crystals.hits(deposits, hits);
        for (const corrections::CrystalHit& hit : hits)
            for (int draw = 0; draw < draws && hit.energy > least_energy; ++draw)
                out.push_back({hit.energy, random.normal()});
    }
    return out;
}

double found_with(double resolution, const std::vector<PeakEnergy>& energies, const config::Energy& window) {
    const double width = resolution / config::fwhm_per_sigma * std::sqrt(corrections::photopeak);
    corrections::PhotopeakWidth peak;
    for (const PeakEnergy& of : energies)
        peak.add(static_cast<float>(of.energy + width * std::sqrt(of.energy) * of.normal));
    return peak.window(window).resolution;
}

}  // namespace

double resolution_of_one_crystal(const config::Scanner& scanner, const corrections::CrystalModel& model,
                                 const corrections::EnergyWindow& found) {
    if (!(model.factor_spread > 0)) return found.resolution;
    const std::vector<PeakEnergy> energies = energies_found(scanner, model);
    if (energies.size() < enough_energies) return found.resolution;
    const config::Energy window{true, found.lower, found.upper};
    double low = least_resolution;
    double high = found.resolution;
    for (int i = 0; i < halvings; ++i) {
        const double middle = (low + high) / 2;
        (found_with(middle, energies, window) < found.resolution ? low : high) = middle;
    }
    return (low + high) / 2;
}

}  // namespace petacq::gammas
