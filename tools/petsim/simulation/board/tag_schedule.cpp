#include "tools/petsim/simulation/board/tag_schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <tuple>

#include "gpu/base/records.hpp"

namespace petacq::sim {

namespace {

/// Of a scanner that turns in steps, there is one at the start and one at the end of each stay: between two
/// tags the angle changes evenly. The last is at the last tick: after it the angle is not told.
template <class Add>
void add_angles(const Movement& movement, const RunClock& clock, double length, Add&& add) {
    const auto& rotation = clock.scanner.rotation;
    if (!rotation) return;
    const double turn = std::abs(rotation->counts_per_turn);
    const auto at = [&](double ticks, double radians) {
        // An encoder counts within one turn or beyond it; of the two this one stays within 32 bits.
        double count = rotation->count(radians);
        if (std::abs(count) > 0x7FFFFFFF) count = std::remainder(count, turn);
        add(ticks, rotation->tag_channel, gpu::TagKind::position,
            static_cast<std::uint32_t>(static_cast<std::int32_t>(count)));
    };
    const double last = std::ceil(length) - 1;
    const double step = movement.turn_interval();
    if (step > 0) {
        for (double start = 0; start < length; start += step) {
            const double angle = movement.scanner_angle(start + step / 2);
            at(start, angle);
            const double end = std::min(std::ceil(start + step) - 1, last);
            if (end > std::floor(start)) at(end, angle);
        }
        return;
    }
    const double per_tick = std::abs(movement.scanner_angle(1));
    const double interval = per_tick > 0 ? 2 * std::numbers::pi / per_tick / turn_tags : length;
    for (double i = 0; std::floor(i * interval) < last; ++i)
        at(std::floor(i * interval), movement.scanner_angle(std::floor(i * interval)));
    at(last, movement.scanner_angle(last));
}

}  // namespace

TagSchedule::TagSchedule(std::uint16_t source, const Options& options, const Movement& movement,
                         const RunClock& clock) {
    const Tags& tags = options.tags;
    if (source != tags.source) return;
    const double ticks_per_s = 1e12 / clock.scanner.tick_ps;
    const double length = options.duration_s * ticks_per_s;
    const auto add = [&](double ticks, std::uint8_t channel, gpu::TagKind kind, std::uint32_t value) {
        if (ticks >= length) return;
        tags_.push_back({options.wire.tag_marker, channel, static_cast<std::uint8_t>(kind),
                         clock.begin + static_cast<std::uint64_t>(ticks), value, options.wire.tail_marker});
    };
    for (std::size_t i = 0; i + 1 < movement.cycles().size(); ++i) {
        if (tags.trigger)
            add(movement.cycles()[i], *tags.trigger, gpu::TagKind::trigger,
                static_cast<std::uint32_t>(i + 1));
        for (const GateTags& gate : tags.gates) {
            add(movement.time_at(i, gate.from), gate.channel, gpu::TagKind::gate, 1);
            add(movement.time_at(i, gate.to), gate.channel, gpu::TagKind::gate, 0);
        }
    }
    if (tags.position) {
        const auto at = [&](double ticks, double mm) {
            const auto micrometres = static_cast<std::int32_t>(std::lround(mm * 1e3));
            add(ticks, *tags.position, gpu::TagKind::position, static_cast<std::uint32_t>(micrometres));
        };
        at(0, 0);
        const double interval = movement.bed_interval();
        for (double step = 1; interval > 0 && step * interval < length; ++step)
            at(step * interval, step * options.bed.step_mm);
    }
    add_angles(movement, clock, length, add);
    if (tags.clock) {
        const double interval = tags.clock->interval_s * ticks_per_s;
        for (double i = 0; i * interval < length; ++i) {
            const auto milliseconds =
                static_cast<std::uint64_t>(std::llround(i * tags.clock->interval_s * 1e3));
            add(i * interval, tags.clock->channel, gpu::TagKind::clock,
                static_cast<std::uint32_t>(milliseconds));
        }
    }
    std::sort(tags_.begin(), tags_.end(), [](const net::TagFrame& a, const net::TagFrame& b) {
        return std::tie(a.time, a.channel, a.kind, a.value) < std::tie(b.time, b.channel, b.kind, b.value);
    });
}

}  // namespace petacq::sim
