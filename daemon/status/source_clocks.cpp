#include "daemon/status/source_clocks.hpp"

#include "daemon/run/problem.hpp"

namespace petacq::daemon {

namespace {

constexpr std::int64_t shortest_stretch_ns = 1'000'000'000;
/// Datagrams with valid frames in a stretch: one that waited in its board matters little among so many.
constexpr std::uint64_t fewest_datagrams = 10;
constexpr int stretches = 2;

std::uint64_t valid_frames(const SourceStatus& s) {
    return s.frames - s.invalid_frames;
}

}  // namespace

void SourceClocks::judge(Watch& watch, const SourceStatus& now, double tick_ps) {
    const SourceStatus& from = watch.from;
    const bool other = now.id != from.id || now.address != from.address || now.datagrams < from.datagrams;
    if (other || now.state != SourceState::active || !now.last_seen || !from.last_seen ||
        from.progress == 0) {
        watch = {now};
        return;
    }
    const std::int64_t stretch_ns = *now.last_seen - *from.last_seen;
    const bool often = now.datagrams - from.datagrams >= fewest_datagrams &&
                       valid_frames(now) - valid_frames(from) >= fewest_datagrams;
    if (stretch_ns < shortest_stretch_ns || !often) return;
    const auto ticks = static_cast<double>(static_cast<std::int64_t>(now.progress - from.progress));
    watch.pace = ticks * tick_ps * 1e-3 / static_cast<double>(stretch_ns);
    watch.slow = watch.pace < slow_clock ? watch.slow + 1 : 0;
    watch.fast = watch.pace > fast_clock ? watch.fast + 1 : 0;
    watch.from = now;
}

void SourceClocks::observe(const std::vector<SourceStatus>& sources, double tick_ps) {
    watches_.resize(sources.size());
    off_.clear();
    for (std::uint32_t i = 0; i < sources.size(); ++i) {
        Watch& watch = watches_[i];
        judge(watch, sources[i], tick_ps);
        if (watch.slow >= stretches || watch.fast >= stretches) off_.push_back({i, watch.pace});
    }
}

}  // namespace petacq::daemon
