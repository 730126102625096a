// Hits of a detector unit that the board takes for one, and dead time that hits prolong.
#include <algorithm>
#include <cmath>

#include "tools/petsim/simulation/stream.hpp"

namespace petacq::sim {

/// A hit that the unit does not take makes a paralysable dead time begin again.
void SourceStream::extend_dead_time(const Hit& hit) {
    if (!options_.physics.paralysable) return;
    std::uint64_t& ready = ready_[hit.unit];
    const std::uint64_t until = std::max(ready, hit.raw_time + options_.physics.dead_time_ticks);
    blind_ += until - ready;
    ready = until;
}

/// Appends a hit with all later ones of its unit within the time of a pile-up.
void SourceStream::append_pile(std::span<const Hit> hits, std::size_t first) {
    LightSum light(hits[first]);
    const std::uint64_t begin = hits[first].raw_time;
    std::uint16_t count = 1;
    for (std::size_t i = first + 1; i < hits.size() && hits[i].raw_time - begin < pile_up_; ++i) {
        const Hit& hit = hits[i];
        if (hit.unit != hits[first].unit || piled_[i] != 0) continue;
        piled_[i] = 1;
        ++count;
        ++statistics_.hits;
        ++statistics_.piled_up;
        extend_dead_time(hit);
        light.add(hit);
    }
    append(light.result(), count);
}

/// What a daemon with the perfect calibration would add to raw times.
std::int64_t SourceStream::true_offset(std::uint32_t crystal) const {
    if (detector_ == nullptr) return calibration_.channel(crystal).time_offset;
    return std::llround(detector_->crystals[crystal].time_offset_ps / tick_ps_);
}

}  // namespace petacq::sim
