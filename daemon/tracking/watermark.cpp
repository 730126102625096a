#include "daemon/tracking/watermark.hpp"

#include <algorithm>
#include <span>

namespace petacq::daemon {

namespace {

/// To save memory, a source may be given up that has been silent for this part of a timeout.
constexpr std::int64_t short_silence = 32;

}  // namespace

bool Watermark::waiting_for_expected(std::int64_t now_ns) const {
    const auto& first = time_.first_proven_ns();
    if (first && now_ns - *first >= options_.source_timeout_ns) return false;
    return std::ranges::any_of(sources_.expected(), [](const Source& s) { return !s.time.proven(); });
}

std::uint64_t Watermark::advance(std::int64_t now_ns, std::uint64_t latest_pending_time) {
    held_ = !time_.established() || waiting_for_expected(now_ns);
    if (held_) return ticks_;
    std::uint64_t lowest = *time_.reference();
    for (const Source& source : sources_.all()) {
        if (!time_.votes(source, now_ns)) continue;
        held_ = true;
        lowest = std::min(lowest, source.time.progress());
    }
    ticks_ = std::max(ticks_, held_ ? behind(lowest) : flushed(now_ns, latest_pending_time));
    return ticks_;
}

std::uint64_t Watermark::without_slow(std::int64_t now_ns,
                                      const std::function<bool(std::uint64_t)>& fits) const {
    by_silence_.clear();
    for (const Source& source : sources_.all())
        if (time_.votes(source, now_ns)) by_silence_.push_back(&source);
    std::ranges::sort(by_silence_, {}, &Source::frame_ns);
    std::span<const Source* const> left = by_silence_;
    while (!left.empty()) {
        const auto slowest = std::ranges::min(left, {}, [](const Source* s) { return s->time.progress(); });
        const std::uint64_t ticks = behind(slowest->time.progress());
        if (fits(ticks)) return ticks;
        const std::int64_t silence = time_.heard_ns() - *left.front()->frame_ns;
        if (left.size() == 1 || silence < options_.source_timeout_ns / short_silence) break;
        left = left.subspan(1);
    }
    if (left.empty()) return 0;
    const std::uint64_t reference = time_.reference_of(left, now_ns);
    const std::uint64_t ticks = behind(reference);
    return fits(ticks) ? ticks : reference;
}

/// Past everything received, when no member holds the watermark.
std::uint64_t Watermark::flushed(std::int64_t now_ns, std::uint64_t latest_pending_time) const {
    if (time_.newest() == 0) return 0;
    const bool wild = latest_pending_time > time_.end_of_disorder();
    const std::uint64_t newest = wild ? time_.newest() : std::max(time_.newest(), latest_pending_time);
    const std::uint64_t past =
        add_or_max(newest, add_or_max(max_offset_, add_or_max(options_.flush_reach, 1)));
    const bool all_ended =
        std::ranges::all_of(sources_.all(), [](const Source& s) { return !s.member || s.sequence.ended(); });
    if (all_ended || options_.ticks_per_ns == 0) return past;
    return std::min(past, behind(time_.present(now_ns)));
}

}  // namespace petacq::daemon
