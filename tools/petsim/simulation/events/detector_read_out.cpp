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

DetectorReadOut::DetectorReadOut(const config::Scanner& scanner, const Detector& detector,
                                 const InverseCalibration& calibration, const UnitDrift& drift)
    : detector_(detector),
      arrangement_(config::arrangement_of(scanner)),
      calibration_(calibration),
      drift_(drift),
      tick_s_(scanner.tick_ps * 1e-12) {
    double highest_ps = 0;
    for (const TrueCrystal& c : detector.crystals)
        highest_ps = std::max(highest_ps, double{c.time_offset_ps});
    highest_offset_ = static_cast<std::int64_t>(std::ceil(highest_ps / scanner.tick_ps));
}

/// The crystal on one of its four sides, of the same layer and unit.
std::optional<std::uint32_t> DetectorReadOut::beside(std::uint32_t crystal, std::uint32_t side) const {
    config::CrystalAddress at = arrangement_->address(crystal);
    const config::CrystalLayer& layer = arrangement_->layer_of(crystal);
    std::uint32_t& place = side < 2 ? at.column : at.row;
    const std::uint32_t count = side < 2 ? layer.y.count() : layer.z.count();
    const bool before = side % 2 == 0;
    if (before ? place == 0 : place + 1 == count) return std::nullopt;
    place += before ? -1 : 1;
    const std::uint32_t other = arrangement_->crystal(at);
    if (calibration_.channel(other).unit != calibration_.channel(crystal).unit) return std::nullopt;
    return other;
}

/// A crystal beside it, evenly drawn; itself if it has none.
std::uint32_t DetectorReadOut::neighbour(std::uint32_t crystal, Random& random) const {
    constexpr std::uint32_t sides = 4;
    bool any = false;
    for (std::uint32_t side = 0; side < sides; ++side)
        any = any || beside(crystal, side);
    while (any) {
        if (const auto other = beside(crystal, random.below(sides))) return *other;
    }
    return crystal;
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
            const TrueCrystal& other = detector_.crystals[neighbour(d.crystal, random)];
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
        draft.chunk.unsorted.push_back({draft.start + static_cast<std::uint64_t>(raw), d.annihilation,
                                        d.crystal, d.energy, static_cast<std::uint16_t>(adc), channel.unit,
                                        static_cast<std::uint8_t>(x), static_cast<std::uint8_t>(y), d.kind,
                                        static_cast<std::uint8_t>(d.history | drift.history)});
    }
}

}  // namespace petacq::sim
