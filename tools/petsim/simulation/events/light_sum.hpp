// Several hits of a detector unit that the board takes for one.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/petsim/simulation/base/hit.hpp"

namespace petacq::sim {

/// The largest value that the ADC of a board gives.
inline constexpr double full_scale_adc = 65535;

/// The light adds up, and the position is the mean, weighted by the
/// light. The time is that of the first, all else that of the brightest.
class LightSum {
  public:
    explicit LightSum(const Hit& first);
    void add(const Hit& hit);
    [[nodiscard]] Hit result() const;

  private:
    Hit sum_;
    bool several_ = false;
    std::uint16_t brightest_;
    double light_;
    double x_;
    double y_;
};

/// The hits of one annihilation or decay in one unit become one. They follow one another.
void join_deposits(std::vector<Hit>& hits);

}  // namespace petacq::sim
