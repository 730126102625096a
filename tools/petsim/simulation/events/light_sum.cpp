#include "tools/petsim/simulation/events/light_sum.hpp"

#include <algorithm>
#include <cmath>

namespace petacq::sim {

LightSum::LightSum(const Hit& first)
    : sum_(first), brightest_(first.adc), light_(first.adc), x_(light_ * first.x), y_(light_ * first.y) {}

void LightSum::add(const Hit& hit) {
    several_ = true;
    const double weight = hit.adc;
    light_ += weight;
    x_ += weight * hit.x;
    y_ += weight * hit.y;
    const std::uint8_t stepped = (sum_.history | hit.history) & history_gain_step;
    sum_.history |= stepped;
    if (hit.adc <= brightest_) return;
    brightest_ = hit.adc;
    sum_.annihilation = hit.annihilation;
    sum_.crystal = hit.crystal;
    sum_.energy = hit.energy;
    sum_.kind = hit.kind;
    sum_.history = hit.history | stepped;
}

Hit LightSum::result() const {
    Hit out = sum_;
    if (!several_ || light_ <= 0) return out;
    out.x = static_cast<std::uint8_t>(std::floor(x_ / light_ + 0.5));
    out.y = static_cast<std::uint8_t>(std::floor(y_ / light_ + 0.5));
    out.adc = static_cast<std::uint16_t>(std::min(light_, full_scale_adc));
    return out;
}

void join_deposits(std::vector<Hit>& hits) {
    std::size_t kept = 0;
    for (std::size_t begin = 0, end = 0; begin < hits.size(); begin = end) {
        end = begin + 1;
        while (hits[begin].annihilation != 0 && end < hits.size() &&
               hits[end].annihilation == hits[begin].annihilation)
            ++end;
        const std::size_t first_kept = kept;
        for (std::size_t i = begin; i < end; ++i) {
            const Hit first = hits[i];  // places from `kept` on may be overwritten
            const auto same_unit = [&](const Hit& hit) { return hit.unit == first.unit; };
            const auto from = hits.begin() + static_cast<std::ptrdiff_t>(first_kept);
            if (std::any_of(from, hits.begin() + static_cast<std::ptrdiff_t>(kept), same_unit)) continue;
            LightSum light(first);
            std::uint64_t earliest = first.raw_time;
            float energy = first.energy;
            for (std::size_t j = i + 1; j < end; ++j) {
                if (!same_unit(hits[j])) continue;
                light.add(hits[j]);
                earliest = std::min(earliest, hits[j].raw_time);
                energy += hits[j].energy;
            }
            Hit joined = light.result();
            joined.raw_time = earliest;
            joined.energy = energy;
            hits[kept++] = joined;
        }
    }
    hits.resize(kept);
}

}  // namespace petacq::sim
