// What crystals make of a photon or a decay in them: whether they detect it, and the time and energy found.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "tools/geometry/hit_finder.hpp"
#include "tools/petsim/detector/detector.hpp"
#include "tools/petsim/random/random.hpp"
#include "tools/petsim/simulation/base/chunk.hpp"
#include "tools/petsim/simulation/base/options.hpp"

namespace petacq::sim {

/// Sigmas within which Gaussians are kept where a bound is needed.
inline constexpr double far_out = 6;
inline double bounded_normal(Random& random) {
    return std::clamp(random.normal(), -far_out, far_out);
}

class CrystalResponse {
  public:
    /// `detector`: the true one, if any; it must outlive this. Throws std::invalid_argument if the efficiency
    /// of a crystal exceeds 1.
    CrystalResponse(const Options& options, const config::Scanner& scanner, const Detector* detector);

    /// Chance that a photon that enters the best crystal is detected; that at least one of two is; that then
    /// both are.
    [[nodiscard]] double efficiency() const { return efficiency_; }
    [[nodiscard]] double either() const { return either_; }
    [[nodiscard]] double both_given_either() const { return both_given_either_; }
    /// Times found are wrong by at most this.
    [[nodiscard]] double furthest_ticks() const;

    /// Whether a photon with most of its energy in the crystal is detected: at the efficiency of the crystal
    /// relative to the best one. What it leaves in other crystals is lost with it: it is one flash of light.
    [[nodiscard]] bool finds(std::uint32_t crystal, Random& random) const {
        return detector_ == nullptr || random.chance(detector_->crystals[crystal].efficiency / best_);
    }
    /// Energy in a crystal, of a decay or a photon that the crystals find. `ticks`: when it started.
    void detect(ChunkDraft& draft, const geometry::Entry& entry, double ticks, double energy,
                const HitOrigin& origin) const;

  private:
    void add_types(const config::Arrangement& arrangement, double tick_ps);

    const Detector* detector_;
    double ticks_per_mm_;
    /// What a module type states, else the options.
    struct Resolution {
        double time_sigma;    ///< ticks
        double energy_width;  ///< see energy_width()
    };
    std::vector<Resolution> resolutions_;               ///< that of the options, then those of the types
    std::vector<std::uint16_t> resolution_of_crystal_;  ///< empty: the first
    double best_ = 1;  ///< efficiency of the best crystal of the true detector
    double efficiency_ = 0;
    double either_ = 0;
    double both_given_either_ = 0;
};

}  // namespace petacq::sim
