#include "tools/petsim/simulation/faults/silences.hpp"

#include <algorithm>

namespace petacq::sim {

Silences::Silences(const Faults& faults, std::uint16_t source, const RunClock& clock) {
    for (const Silence& s : faults.silences) {
        if (s.source == source) to_come_.push_back({clock.at(s.from_s), clock.at(s.to_s), 0});
    }
    std::sort(to_come_.begin(), to_come_.end(),
              [](const Quiet& a, const Quiet& b) { return a.from > b.from; });
    for (const SilentUnit& s : faults.silent_units) {
        const std::uint32_t unit = s.bdm * clock.scanner.geometry.du_count + s.du;
        of_units_.push_back({clock.at(s.from_s), clock.at(s.to_s), unit});
    }
}

void Silences::begin() {
    until_ = std::max(until_, to_come_.back().to);
    to_come_.pop_back();
}

bool Silences::cover(std::uint64_t time, std::uint32_t unit) const {
    return cover(time) || std::any_of(of_units_.begin(), of_units_.end(), [&](const Quiet& q) {
               return q.unit == unit && q.from <= time && time < q.to;
           });
}

}  // namespace petacq::sim
