#include "tools/petsim/simulation/events/emitters.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "config/base/constants.hpp"

namespace petacq::sim {

Emitters::Emitters(const Options& options, const Movement& movement, const geometry::HitFinder& finder,
                   const CrystalResponse& response)
    : options_(options),
      movement_(movement),
      range_sigma_(options.physics.positron_range_mm / config::fwhm_per_sigma),
      angle_sigma_(options.physics.noncollinearity_deg * std::numbers::pi / 180 / config::fwhm_per_sigma) {
    for (const ActivitySource& source : options.activity) {
        const bool pairs = source.photon_kev == 0;
        const double limit = cosine_limit(source, finder);
        const double scatter = pairs && !options.object ? options.physics.scatter : 0;
        if (source.nuclide != nullptr) {
            add_nuclide(source, response, limit, scatter);
        } else {
            emitters_.push_back({source, limit, pairs ? response.either() : response.efficiency(), scatter});
        }
    }
}

// A delayed gamma comes so long after its decay that it is an emission of its own, as frequent as its decays.
void Emitters::add_nuclide(const ActivitySource& source, const CrystalResponse& response, double limit,
                           double scatter) {
    const config::Nuclide& nuclide = *source.nuclide;
    const bool cascade = std::any_of(nuclide.gammas.begin(), nuclide.gammas.end(),
                                     [](const config::Gamma& g) { return g.delay_half_life_s == 0; });
    if (cascade) {
        emitters_.push_back({source, 1, 1, scatter, nuclide.branching_ratio, true});
    } else {
        emitters_.push_back(
            {source, limit, nuclide.branching_ratio * response.either(), scatter, nuclide.branching_ratio});
    }
    for (const config::Gamma& gamma : nuclide.gammas) {
        if (gamma.delay_half_life_s == 0) continue;
        ActivitySource alone = source;
        alone.photon_kev = gamma.energy_keV;
        emitters_.push_back({alone, limit, gamma.per_decay * response.efficiency(), 0, 0});
    }
}

// The steepest path from any point of the source to the end of the scanner limits the directions to follow.
double Emitters::cosine_limit(const ActivitySource& source, const geometry::HitFinder& finder) const {
    if (options_.object) return 1;  // it may scatter any photon into the scanner
    double reach = std::hypot(source.at[0], source.at[1]) + source.radius_mm;
    double low = source.at[2] - source.length_mm / 2;
    double high = source.at[2] + source.length_mm / 2;
    if (source.shape == Shape::line) {
        reach = std::max(reach, std::hypot(source.to[0], source.to[1]));
        low = std::min(source.at[2], source.to[2]);
        high = std::max(source.at[2], source.to[2]);
    }
    const Movement::Range range = movement_.axial_range(source.motion);
    low += range.low;
    high += range.high;
    if (source.motion.axis < 2) reach += std::abs(source.motion.amplitude_mm);
    // Along each of two axes by up to far_out sigmas, so across by up to sqrt(2) times as much.
    const double strayed = far_out * range_sigma_;
    reach += strayed * std::numbers::sqrt2;
    const double axial =
        std::max({finder.axial_high_mm() - (low - strayed), (high + strayed) - finder.axial_low_mm(), 0.0});
    const double room = finder.radius_mm() - reach;
    if (room <= 0) return 1;
    const double angle = std::atan2(room, axial) - far_out * angle_sigma_ * std::numbers::sqrt2;
    return angle > 0 ? std::min(1.0, std::cos(angle) * (1 + 1e-9)) : 1.0;
}

double Emitters::activity(const ActivitySource& source, double from_s, double to_s) const {
    return source.activity_mbq * 1e6 * options_.activity_scale *
           mean_share(source.curve, source.half_life_s, from_s, to_s);
}

Vector3 Emitters::decay_point(const ActivitySource& source, double ticks, Random& random) const {
    Vector3 p = source.at;
    if (movement_.bed_interval() > 0 || source.motion.amplitude_mm != 0) {
        const Vector3 by = movement_.shift(source.motion, ticks);
        for (std::size_t i = 0; i < 3; ++i)
            p[i] += by[i];
    }
    if (source.shape == Shape::line) {
        const double along = random.uniform();
        for (std::size_t i = 0; i < 3; ++i)
            p[i] += along * (source.to[i] - source.at[i]);
    } else if (source.shape == Shape::cylinder) {
        Vector3 offset = point_in_cylinder(source, random);
        while (!source.cold.empty() && in_cold_region(source, offset))
            offset = point_in_cylinder(source, random);
        for (std::size_t i = 0; i < 3; ++i)
            p[i] += offset[i];
    }
    return p;
}

Vector3 Emitters::annihilation_point(Vector3 decay, Random& random) const {
    if (range_sigma_ > 0) {
        for (double& v : decay)
            v += range_sigma_ * bounded_normal(random);
    }
    return decay;
}

}  // namespace petacq::sim
