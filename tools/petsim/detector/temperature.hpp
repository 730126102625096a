// The temperature of detector units: in their frames, and in the drift of their clocks and gains.
#pragma once

#include <cstdint>
#include <vector>

#include "config/scanner/scanner.hpp"

namespace petacq::sim {

/// From then on a module is warmer by `degrees`, or colder. Steps of one module add up.
struct TemperatureStep {
    std::uint32_t bdm = 0;
    double at_s = 0;  ///< from the start of the simulation
    double degrees = 0;
};

/// Units differ by up to 2 degrees and swing by 1.5 degrees in 10 minutes; a temperature holds for a second.
class Temperatures {
  public:
    /// `begin_s`: detector time at which the simulation begins.
    Temperatures(std::uint64_t seed, double mean_c, const config::Geometry& geometry, double begin_s,
                 const std::vector<TemperatureStep>& steps);
    /// `second`: of detector time, whole.
    [[nodiscard]] double celsius(std::size_t unit, double second) const;
    /// The largest distance of any temperature from `reference`.
    [[nodiscard]] double furthest_from(double reference) const;

  private:
    struct Unit {
        double spread;
        double phase;
    };
    struct UnitStep {
        std::size_t first;  // of its units
        std::size_t last;
        double from_s;
        double degrees;
    };
    double mean_c_;
    std::vector<UnitStep> steps_;
    std::vector<Unit> units_;
};

}  // namespace petacq::sim
