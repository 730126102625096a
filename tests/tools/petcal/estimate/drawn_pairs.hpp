// Pairs of photons from a cylinder along the axis in any arrangement of crystals, each detected on the front
// face of a crystal: an obvious simulation without depth, scatter and blocking of crystals.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "config/scanner/arrangement.hpp"
#include "tests/tools/petcal/estimate/fast_pairs.hpp"

namespace petacq::test {

/// Of config/examples/scanners.
config::Scanner example_of_long_form(const std::string& name);

class DrawnPairs {
  public:
    DrawnPairs(const config::Scanner& scanner, std::uint64_t seed);

    /// Ticks; those of crystals spread by 30.
    [[nodiscard]] const std::vector<double>& offsets() const { return offsets_; }
    /// Chance that a photon on the front face is detected; the others go on.
    std::vector<double>& efficiency() { return efficiency_; }

    struct Pair {
        std::uint32_t a;
        std::uint32_t b;
        double ticks;  ///< of b after a
    };
    /// Of one annihilation; nothing unless both photons are detected.
    std::optional<Pair> next(const FastSource& source);

  private:
    struct Hit {
        std::uint32_t crystal;
        double way_mm;
    };
    /// The nearest front face whose crystal detects the photon.
    std::optional<Hit> detect(const config::Vector3& from, const config::Vector3& to);
    double time(const Hit& hit);

    std::shared_ptr<const config::Arrangement> arrangement_;
    double tick_ps_;
    std::mt19937_64 random_;
    std::normal_distribution<> normal_;
    std::uniform_real_distribution<> uniform_;
    std::vector<double> offsets_;
    std::vector<double> efficiency_;
    double steepest_ = 0;  // cosine to the axis, of a line between two crystals
    std::vector<Hit> faces_;
};

}  // namespace petacq::test
