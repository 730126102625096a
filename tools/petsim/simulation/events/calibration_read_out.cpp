#include "tools/petsim/simulation/events/calibration_read_out.hpp"

#include <algorithm>
#include <cmath>

namespace petacq::sim {

// Separate from the tracking, so that entries of the large calibration tables can be prefetched.
void CalibrationReadOut::read(ChunkDraft& draft) const {
    constexpr std::size_t ahead = 16;
    const auto& detections = draft.chunk.detections;
    const auto fetch = [&](std::size_t i) {
        if (i + ahead < detections.size()) calibration_.prefetch(detections[i + ahead].crystal);
        const Detection& d = detections[i];
        calibration_.prefetch(calibration_.channel(d.crystal), d.choice, d.energy);
    };
    for (std::size_t i = 0; i < std::min(ahead, detections.size()); ++i)
        fetch(i);
    for (std::size_t i = 0; i < detections.size(); ++i) {
        if (i + ahead < detections.size()) fetch(i + ahead);
        const Detection& d = detections[i];
        const InverseCalibration::Channel& channel = calibration_.channel(d.crystal);
        if (channel.position_count == 0) {
            ++draft.chunk.counts.unreadable;
            continue;
        }
        const Position position = calibration_.position(channel, d.choice);
        const Drift drift = drift_.at(channel.unit, draft, d.ticks);
        const Reading reading = calibration_.reading(channel, d.energy * drift.gain);
        const std::int64_t raw =
            static_cast<std::int64_t>(std::floor(d.ticks + drift.ticks)) - channel.time_offset;
        draft.chunk.unsorted.push_back({draft.start + static_cast<std::uint64_t>(raw), d.annihilation,
                                        d.crystal, reading.energy, reading.adc, position.x, position.y,
                                        channel.unit & max_unit, d.kind & 0xFU,
                                        static_cast<std::uint8_t>(d.history | drift.history)});
    }
}

}  // namespace petacq::sim
