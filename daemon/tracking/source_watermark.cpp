// The watermark and the status of SourceTracker.
#include <algorithm>

#include "daemon/tracking/saturate.hpp"
#include "daemon/tracking/source_tracker.hpp"

namespace petacq::daemon {

namespace {

/// To save memory, a source may be given up that has been silent for this part of a timeout.
constexpr std::int64_t short_silence = 32;

/// a - b, saturated to the range of the result.
std::int64_t signed_difference(std::uint64_t a, std::uint64_t b) {
    constexpr std::int64_t max = std::numeric_limits<std::int64_t>::max();
    const std::uint64_t d = time_between(a, b);
    const std::int64_t size = d > static_cast<std::uint64_t>(max) ? max : static_cast<std::int64_t>(d);
    return a < b ? -size : size;
}

}  // namespace

bool SourceTracker::waiting_for_expected(std::int64_t now_ns) const {
    if (first_proven_ns_ && now_ns - *first_proven_ns_ >= options_.source_timeout_ns) return false;
    // The expected sources come first in sources_.
    const auto end = sources_.begin() + static_cast<std::ptrdiff_t>(expected_);
    return std::any_of(sources_.begin(), end, [](const Source& s) { return !s.time.proven(); });
}

std::uint64_t SourceTracker::watermark(std::int64_t now_ns, std::uint64_t latest_pending_time) {
    decide(now_ns);
    held_ = !reference_ || waiting_for_expected(now_ns);
    if (held_) return watermark_;
    std::uint64_t lowest = *reference_;
    for (const Source& source : sources_) {
        if (!votes(source, now_ns)) continue;
        held_ = true;
        lowest = std::min(lowest, source.time.progress());
    }
    const std::uint64_t candidate =
        held_ ? subtract_or_zero(subtract_or_zero(lowest, options_.max_disorder), options_.max_offset)
              : flushed(now_ns, latest_pending_time);
    watermark_ = std::max(watermark_, candidate);
    return watermark_;
}

std::uint64_t SourceTracker::watermark_without_slow(std::int64_t now_ns,
                                                    const std::function<bool(std::uint64_t)>& fits) const {
    by_silence_.clear();
    for (const Source& source : sources_)
        if (votes(source, now_ns)) by_silence_.push_back(&source);
    std::sort(by_silence_.begin(), by_silence_.end(),
              [](const Source* a, const Source* b) { return *a->frame_ns < *b->frame_ns; });
    const auto less_disorder = [&](std::uint64_t ticks) {
        return subtract_or_zero(subtract_or_zero(ticks, options_.max_disorder), options_.max_offset);
    };
    std::span<const Source* const> left = by_silence_;
    while (!left.empty()) {
        const auto slowest = std::min_element(left.begin(), left.end(), [](const Source* a, const Source* b) {
            return a->time.progress() < b->time.progress();
        });
        const std::uint64_t ticks = less_disorder((*slowest)->time.progress());
        if (fits(ticks)) return ticks;
        const bool silent = heard_ns_ - *left.front()->frame_ns >= options_.source_timeout_ns / short_silence;
        if (left.size() == 1 || !silent) break;
        left = left.subspan(1);
    }
    if (left.empty()) return 0;
    const std::uint64_t reference = reference_of(left, now_ns);
    const std::uint64_t ticks = less_disorder(reference);
    return fits(ticks) ? ticks : reference;
}

/// As rule 2 has it, if these were the only ones that are active.
std::uint64_t SourceTracker::reference_of(std::span<const Source* const> sources, std::int64_t now_ns) const {
    scratch_.clear();
    for (const Source* source : sources)
        scratch_.push_back(source->time.progress());
    const auto middle = scratch_.begin() + static_cast<std::ptrdiff_t>(scratch_.size() / 2);
    std::nth_element(scratch_.begin(), middle, scratch_.end());
    const bool safe = scratch_.size() >= safe_votes || scratch_.size() == members_;
    return safe ? *middle : std::min(*middle, host_reference(now_ns));
}

/// Past everything received, when no member holds the watermark.
std::uint64_t SourceTracker::flushed(std::int64_t now_ns, std::uint64_t latest_pending_time) const {
    if (newest_ == 0) return 0;
    // Pending singles further ahead come from a wild frame: they must not move the watermark.
    const std::uint64_t reach = add_or_max(add_or_max(newest_, options_.max_jump), options_.max_offset);
    const std::uint64_t newest = std::max(newest_, std::min(latest_pending_time, reach));
    const std::uint64_t past =
        add_or_max(newest, add_or_max(options_.max_offset, add_or_max(options_.flush_reach, 1)));
    const bool all_ended = std::all_of(sources_.begin(), sources_.end(),
                                       [](const Source& s) { return !s.member || s.sequence.ended(); });
    if (all_ended || options_.ticks_per_ns == 0) return past;
    const std::uint64_t present = std::max(*reference_, host_reference(now_ns));
    return std::min(past,
                    subtract_or_zero(subtract_or_zero(present, options_.max_disorder), options_.max_offset));
}

SourceState SourceTracker::state_of(const Source& source, std::int64_t now_ns) const {
    if (source.time.jumping()) return SourceState::jumping;
    if (source.sequence.ended() || source.succeeded) return SourceState::ended;
    if (!source.time.proven()) {
        const bool heard = source.seen_ns && now_ns - *source.seen_ns < options_.source_timeout_ns;
        return heard && source.time.row() > 0 ? SourceState::active : SourceState::silent;
    }
    if (!active(source, now_ns)) return SourceState::silent;
    if (!reference_ || in_place(source)) return SourceState::active;
    return source.time.progress() < *reference_ ? SourceState::lagging : SourceState::leading;
}

TrackerStatus SourceTracker::status(std::int64_t now_ns) const {
    TrackerStatus t;
    t.watermark = watermark_;
    t.reference = reference_;
    t.replaced = replacements_;
    t.expected = expected_;
    // The sources have advanced since the reference was determined.
    const auto agreed = reference_ ? median_vote(now_ns) : std::nullopt;
    t.sources.reserve(sources_.size());
    std::uint64_t lowest = std::numeric_limits<std::uint64_t>::max();
    for (const Source& source : sources_) {
        const std::uint64_t progress = source.time.progress();
        SourceStatus s;
        s.id = source.id;
        s.address = source.address;
        s.port = source.port;
        s.state = state_of(source, now_ns);
        s.datagrams = source.datagrams;
        s.frames = source.frames;
        s.invalid_frames = source.invalid_frames;
        s.numbers = source.watch.pattern(source.sequence);
        s.latest_numbers = source.watch.latest_pattern();
        s.unnumbered = source.watch.unnumbered(source.sequence);
        if (options_.framing == net::Framing::sequenced && !s.numbers)
            s.lost = source.watch.lost(source.sequence);
        s.sequence = source.sequence.counts();
        s.jumped_datagrams = source.jumped_datagrams;
        s.clock_jumps = source.clock_jumps;
        s.steps_back = source.steps_back;
        s.rate = source.rate.wrong();
        s.latest_rate = source.rate.latest();
        s.wrong_seconds = source.rate.wrong_seconds();
        s.progress = progress;
        if (agreed && source.time.proven()) s.skew = signed_difference(progress, *agreed);
        s.first_seen = source.first_seen_ns;
        s.last_seen = source.seen_ns;
        s.bdms = source.bdms;
        if (votes(source, now_ns) && progress < lowest) {
            lowest = progress;
            t.holding = t.sources.size();
        }
        t.sources.push_back(s);
    }
    t.behind_watermark = back_ != Back::no || (t.holding && *reference_ < watermark_);
    return t;
}

}  // namespace petacq::daemon
