// The thermometers of the detector units, as frames report them: read once a second.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/petsim/detector/temperature.hpp"
#include "tools/petsim/simulation/base/options.hpp"
#include "tools/petsim/simulation/base/run_clock.hpp"

namespace petacq::sim {

class Thermometers {
  public:
    /// Those of the modules of a source. Reads them for the first time at the begin of the clock.
    Thermometers(const Options& options, const config::Source& source, const RunClock& clock);
    [[nodiscard]] std::int16_t sixteenths(std::uint32_t unit) const {
        return sixteenths_[unit - first_unit_];
    }
    /// When they are read next.
    [[nodiscard]] std::uint64_t next() const { return next_; }
    /// The result depends only on the time, not on the readings before.
    void read(std::uint64_t time);

  private:
    Temperatures temperatures_;
    double tick_ps_;
    std::uint64_t step_;
    std::uint64_t next_ = 0;
    std::uint32_t first_unit_ = 0;          // the lowest of the source
    std::vector<std::int16_t> sixteenths_;  // of a degree [unit - first_unit_]
};

}  // namespace petacq::sim
