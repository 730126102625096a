#include "tools/petsim/simulation/board/dead_time.hpp"

#include <algorithm>
#include <utility>

namespace petacq::sim {

DeadTime::DeadTime(const Options& options, const config::Source& source, const RunClock& clock)
    : ticks_(options.physics.dead_time_ticks), paralysable_(options.physics.paralysable) {
    const config::Geometry& g = clock.scanner.geometry;
    for (const std::uint32_t bdm : source.bdms) {
        for (std::uint32_t du = 0; du < g.du_count; ++du) {
            const std::uint32_t unit = bdm * g.du_count + du;
            if (g.crystals_of_unit(unit) > 0) units_.push_back(unit);
        }
    }
    if (units_.empty()) return;
    const auto [lowest, highest] = std::minmax_element(units_.begin(), units_.end());
    first_unit_ = *lowest;
    ready_.assign(*highest - *lowest + 1, 0);
    if (!options.tags.dead_time) return;
    tag_step_ = std::max<std::uint64_t>(clock.ticks(options.tags.dead_time->interval_s), 1);
    tag_at_ = clock.begin + tag_step_;
}

bool DeadTime::takes(const Hit& hit) {
    std::uint64_t& ready = ready_[hit.unit - first_unit_];
    if (hit.raw_time < ready) {
        extend(hit);
        return false;
    }
    ready = hit.raw_time + ticks_;
    blind_ += ticks_;
    return true;
}

void DeadTime::extend(const Hit& hit) {
    if (!paralysable_) return;
    std::uint64_t& ready = ready_[hit.unit - first_unit_];
    const std::uint64_t until = std::max(ready, hit.raw_time + ticks_);
    blind_ += until - ready;
    ready = until;
}

std::uint32_t DeadTime::report() {
    std::uint64_t to_come = 0;
    for (const std::uint32_t unit : units_)
        to_come += std::max(ready_[unit - first_unit_], tag_at_) - tag_at_;
    const std::uint64_t blind = (blind_ - to_come) / units_.size();
    tag_at_ += tag_step_;
    return static_cast<std::uint32_t>(blind - std::exchange(reported_, blind));
}

}  // namespace petacq::sim
