// The temperature of detector units: in their frames, and in the drift of their clocks and gains.
#pragma once

#include <cstdint>
#include <vector>

namespace petacq::sim {

/// Units differ by up to 2 degrees and swing by 1.5 degrees in 10 minutes; a temperature holds for a second.
class Temperatures {
  public:
    Temperatures(std::uint64_t seed, double mean_c, std::size_t units);
    /// `second`: of detector time, whole.
    [[nodiscard]] double celsius(std::size_t unit, double second) const;
    /// The largest distance of any temperature from `reference`.
    [[nodiscard]] double furthest_from(double reference) const;

  private:
    struct Unit {
        double spread;
        double phase;
    };
    double mean_c_;
    std::vector<Unit> units_;
};

}  // namespace petacq::sim
