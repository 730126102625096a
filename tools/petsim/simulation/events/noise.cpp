#include "tools/petsim/simulation/events/noise.hpp"

#include <cmath>

namespace petacq::sim {

namespace {

// An exponential up to twelve times its mean.
constexpr double dark_step = 12.0 / 1024;
std::vector<double> dark_density() {
    std::vector<double> density;
    for (int i = 0; i <= 1024; ++i)
        density.push_back(std::exp(-i * dark_step));
    return density;
}

}  // namespace

Noise::Noise(const Options& options, const InverseCalibration& calibration, const Detector* detector)
    : calibration_(calibration), spectrum_(dark_density(), 0, options.physics.dark_mean_keV * dark_step) {
    const config::Geometry& g = calibration.geometry();
    for (std::uint32_t unit = 0; unit < g.unit_count(); ++unit)
        if (g.crystals_of_unit(unit) > 0) units_.push_back(unit);
    if (detector == nullptr) return;
    for (std::uint32_t i = 0; i < detector->crystals.size(); ++i) {
        if (detector->crystals[i].state == CrystalState::noisy) crystals_.push_back(i);
    }
    crystals_hz_ = detector->noise_hz * static_cast<double>(crystals_.size());
}

void Noise::add_dark(ChunkDraft& draft, double ticks) const {
    const config::Geometry& g = calibration_.geometry();
    ++draft.chunk.counts.darks;
    const std::uint32_t unit = units_[draft.random.below(static_cast<std::uint32_t>(units_.size()))];
    const std::uint32_t crystal = calibration_.crystal_of(unit, draft.random.below(g.crystals_of_unit(unit)));
    draft.detect(crystal, ticks, spectrum_.draw(draft.random), {0, hit_dark, 0});
}

void Noise::add_crystals(ChunkDraft& draft, double length, double tick_s) const {
    if (crystals_hz_ <= 0) return;
    constexpr double flat = 0.1;  // share with any energy; the others have that of dark counts
    Random& random = draft.random;
    const double gap = 1 / (crystals_hz_ * tick_s);
    for (double t = random.exponential() * gap; t < length; t += random.exponential() * gap) {
        ++draft.chunk.counts.darks;
        const std::uint32_t crystal = crystals_[random.below(static_cast<std::uint32_t>(crystals_.size()))];
        const double energy =
            random.chance(flat) ? 2 * annihilation_keV * random.uniform() : spectrum_.draw(random);
        draft.detect(crystal, t, energy, {0, hit_dark, 0});
    }
}

}  // namespace petacq::sim
