// Pairs of photons from a cylinder in a ring of crystals without gaps, faster than those of petsim: what
// stated errors are worth needs hundreds of scans.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "tools/petcal/estimate/pairs/known_source.hpp"
#include "tools/petcal/estimate/pairs/time_offsets.hpp"

namespace petacq::test {

/// Twelve modules of 2 x 3 crystals: rings without gaps.
config::Scanner ring_of_72();

struct FastSource {
    double x = 0;  ///< mm
    double y = 0;
    double z = 0;
    double radius = 0;
    double length = 0;
};

class FastPairs {
  public:
    FastPairs(const config::Scanner& scanner, std::uint64_t seed);

    /// Ticks; those of crystals spread by 30.
    [[nodiscard]] const std::vector<double>& offsets() const { return offsets_; }
    [[nodiscard]] const config::Vector3& place(std::uint32_t crystal) const { return places_[crystal]; }

    /// Crystals of the photons of one annihilation, and how many ticks later that of b is.
    struct Pair {
        std::uint32_t a;
        std::uint32_t b;
        double ticks;
    };
    /// Nothing if one photon leaves the ring.
    std::optional<Pair> next(const FastSource& source);

    /// So many whose lines meet the source, of which a share is random.
    std::vector<estimate::TimeDifference> differences(const FastSource& source,
                                                      const estimate::KnownSource& known, std::size_t count,
                                                      double random_share = 0);

  private:
    [[nodiscard]] double ticks_per_mm() const;
    double time(std::uint32_t crystal, double way_mm);
    [[nodiscard]] std::optional<std::uint32_t> crystal_at(double x, double y, double z) const;

    const config::Scanner& scanner_;
    std::mt19937_64 random_;
    std::normal_distribution<> normal_;
    std::uniform_real_distribution<> uniform_;
    std::vector<config::Vector3> places_;
    std::vector<double> offsets_;
    double radius_ = 0;
    double first_angle_ = 0;
};

/// How often a value lies within its stated error of the truth.
struct Coverage {
    double inside = 0;
    double all = 0;
    void add(double wrong, double error) {
        inside += std::abs(wrong) < error ? 1 : 0;
        all += 1;
    }
    [[nodiscard]] double share() const { return inside / all; }
};

}  // namespace petacq::test
