#include "daemon/seconds/second.hpp"

namespace petacq::daemon {

Second Second::none(const config::Geometry& geometry) {
    Second second;
    second.sums = gpu::IntervalSums::none(geometry);
    second.temperature_C.assign(geometry.bdm_count, unknown);
    second.dead_time.assign(geometry.bdm_count, unknown);
    return second;
}

void Second::set_time(std::uint64_t start_ticks, std::uint64_t length_ticks,
                      const gpu::CoincidenceRules& rules) {
    start = start_ticks;
    length = length_ticks;
    weights = gpu::randoms_weights(rules, sums.counts, length);
}

}  // namespace petacq::daemon
