#include "tools/petsim/simulation/events/detector_read_out.hpp"

#include <algorithm>
#include <cmath>

#include "tools/petsim/simulation/events/light_sum.hpp"

namespace petacq::sim {

namespace {

double nearest(double value, double most) {
    return std::clamp(std::floor(value + 0.5), 0.0, most);
}

}  // namespace

DetectorReadOut::DetectorReadOut(const Detector& detector, const InverseCalibration& calibration,
                                 const UnitDrift& drift, double tick_ps)
    : detector_(detector), calibration_(calibration), drift_(drift), tick_s_(tick_ps * 1e-12) {
    double highest_ps = 0;
    for (const TrueCrystal& c : detector.crystals)
        highest_ps = std::max(highest_ps, double{c.time_offset_ps});
    highest_offset_ = static_cast<std::int64_t>(std::ceil(highest_ps / tick_ps));
}

/// A crystal beside it in the same block.
std::uint32_t DetectorReadOut::neighbour(const InverseCalibration::Channel& channel, Random& random) const {
    const config::Geometry& g = calibration_.geometry();
    const std::uint32_t row = channel.local / g.crystals.z;
    const std::uint32_t column = channel.local % g.crystals.z;
    while (g.crystals_per_du() > 1) {
        const std::uint32_t side = random.below(4);
        if (side == 0 && row > 0) return calibration_.crystal_of(channel.unit, channel.local - g.crystals.z);
        if (side == 1 && row + 1 < g.crystals.y)
            return calibration_.crystal_of(channel.unit, channel.local + g.crystals.z);
        if (side == 2 && column > 0) return calibration_.crystal_of(channel.unit, channel.local - 1U);
        if (side == 3 && column + 1 < g.crystals.z)
            return calibration_.crystal_of(channel.unit, channel.local + 1U);
    }
    return calibration_.crystal_of(channel.unit, channel.local);
}

void DetectorReadOut::read(ChunkDraft& draft) const {
    const double last = calibration_.geometry().position_size - 1.0;
    constexpr std::size_t ahead = 16;
    Random& random = draft.random;
    const auto& detections = draft.chunk.detections;
    for (std::size_t i = 0; i < detections.size(); ++i) {
        if (i + ahead < detections.size()) {
            __builtin_prefetch(&detector_.crystals[detections[i + ahead].crystal]);
            calibration_.prefetch(detections[i + ahead].crystal);
        }
        const Detection& d = detections[i];
        const TrueCrystal& c = detector_.crystals[d.crystal];
        const InverseCalibration::Channel& channel = calibration_.channel(d.crystal);
        if (c.state == CrystalState::dead) {
            ++draft.chunk.counts.unreadable;
            continue;
        }
        double x = c.spot_x;
        double y = c.spot_y;
        if (detector_.crosstalk > 0 && random.chance(detector_.crosstalk)) {
            const TrueCrystal& other = detector_.crystals[neighbour(channel, random)];
            const double share = random.uniform() / 2;
            x += share * (other.spot_x - x);
            y += share * (other.spot_y - y);
        }
        x = nearest(x + c.spot_sigma_x * random.normal(), last);
        y = nearest(y + c.spot_sigma_y * random.normal(), last);
        const Drift drift = drift_.at(channel.unit, draft, d.ticks);
        const double adc = nearest(adc_of(c, d.energy) * drift.gain, full_scale_adc);
        const auto raw =
            static_cast<std::int64_t>(std::floor(d.ticks + drift.ticks - c.time_offset_ps * 1e-12 / tick_s_));
        draft.chunk.unsorted.push_back(
            {draft.start + static_cast<std::uint64_t>(raw), d.annihilation, d.crystal, d.energy,
             static_cast<std::uint16_t>(adc), static_cast<std::uint8_t>(x), static_cast<std::uint8_t>(y),
             channel.unit & max_unit, d.kind & 0xFU, static_cast<std::uint8_t>(d.history | drift.history)});
    }
}

}  // namespace petacq::sim
