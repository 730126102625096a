#include "tools/petsim/simulation/board/thermometers.hpp"

#include <algorithm>
#include <cmath>

namespace petacq::sim {

Thermometers::Thermometers(const Options& options, const RunClock& clock)
    : temperatures_(options.seed, options.physics.temperature_c, clock.scanner.geometry, options.start_s,
                    options.faults.temperature_steps),
      tick_ps_(clock.scanner.tick_ps),
      step_(clock.ticks(1)) {
    const config::Geometry& g = clock.scanner.geometry;
    sixteenths_.resize(std::size_t{g.bdm_count} * g.du_count);
    read(clock.begin);
}

void Thermometers::read(std::uint64_t time) {
    const double second = std::floor(static_cast<double>(time) * tick_ps_ * 1e-12);
    for (std::size_t unit = 0; unit < sixteenths_.size(); ++unit) {
        const double sixteenths = temperatures_.celsius(unit, second) * 16;
        sixteenths_[unit] = static_cast<std::int16_t>(std::clamp(std::lround(sixteenths), -2048L, 2047L));
    }
    next_ = (time / step_ + 1) * step_;
}

}  // namespace petacq::sim
