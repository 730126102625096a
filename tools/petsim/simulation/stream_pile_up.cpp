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

/// Appends a hit with all later ones of its unit within the time of a pile-up: their light adds up, the
/// position is the mean, weighted by the light. The time is that of the first, the origin that of the
/// brightest.
void SourceStream::append_pile(std::span<const Hit> hits, std::size_t first) {
    Hit pile = hits[first];
    std::uint16_t brightest = pile.adc;
    double light = pile.adc;
    double x = light * pile.x;
    double y = light * pile.y;
    std::uint16_t count = 1;
    for (std::size_t i = first + 1; i < hits.size() && hits[i].raw_time - pile.raw_time < pile_up_; ++i) {
        const Hit& hit = hits[i];
        if (hit.unit != pile.unit || piled_[i] != 0) continue;
        piled_[i] = 1;
        ++count;
        ++statistics_.hits;
        ++statistics_.piled_up;
        extend_dead_time(hit);
        const double weight = hit.adc;
        light += weight;
        x += weight * hit.x;
        y += weight * hit.y;
        pile.gain_stepped |= hit.gain_stepped;
        if (hit.adc <= brightest) continue;
        brightest = hit.adc;
        pile.annihilation = hit.annihilation;
        pile.crystal = hit.crystal;
        pile.energy = hit.energy;
        pile.kind = hit.kind;
    }
    if (count > 1 && light > 0) {
        pile.x = static_cast<std::uint8_t>(std::floor(x / light + 0.5));
        pile.y = static_cast<std::uint8_t>(std::floor(y / light + 0.5));
        pile.adc = static_cast<std::uint16_t>(std::min(light, 65535.0));
    }
    append(pile, count);
}

/// What a daemon with the perfect calibration would add to raw times.
std::int64_t SourceStream::true_offset(std::uint32_t crystal) const {
    if (detector_ == nullptr) return calibration_.channel(crystal).time_offset;
    return std::llround(detector_->crystals[crystal].time_offset_ps / tick_ps_);
}

}  // namespace petacq::sim
