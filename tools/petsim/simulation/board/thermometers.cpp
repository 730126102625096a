#include "tools/petsim/simulation/board/thermometers.hpp"

#include <algorithm>
#include <cmath>

namespace petacq::sim {

Thermometers::Thermometers(const Options& options, const config::Source& source, const RunClock& clock)
    : temperatures_(options.seed, options.physics.temperature_c, clock.scanner.geometry, options.start_s,
                    options.faults.temperature_steps),
      tick_ps_(clock.scanner.tick_ps),
      step_(clock.ticks(1)) {
    if (!source.bdms.empty()) {
        const auto [lowest, highest] = std::minmax_element(source.bdms.begin(), source.bdms.end());
        const std::uint32_t du_count = clock.scanner.geometry.du_count;
        first_unit_ = *lowest * du_count;
        sixteenths_.resize(std::size_t{*highest - *lowest + 1} * du_count);
    }
    read(clock.begin);
}

void Thermometers::read(std::uint64_t time) {
    const double second = std::floor(static_cast<double>(time) * tick_ps_ * 1e-12);
    for (std::size_t i = 0; i < sixteenths_.size(); ++i) {
        const double sixteenths = temperatures_.celsius(first_unit_ + i, second) * 16;
        sixteenths_[i] = static_cast<std::int16_t>(std::clamp(std::lround(sixteenths), -2048L, 2047L));
    }
    next_ = (time / step_ + 1) * step_;
}

}  // namespace petacq::sim
