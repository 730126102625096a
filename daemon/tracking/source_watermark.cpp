// The reference, the watermark and the status of SourceTracker.
#include <algorithm>
#include <cassert>
#include <functional>

#include "daemon/tracking/saturate.hpp"
#include "daemon/tracking/source_tracker.hpp"

namespace petacq::daemon {

namespace {

/// A source counts as heard recently for this many timeouts.
constexpr std::int64_t lately = 10;

/// The largest vote that at least half of the votes support. A vote supports those at most max_lag above it.
/// Sorts `votes`.
std::uint64_t largest_supported(std::vector<std::uint64_t>& votes, std::uint64_t max_lag) {
    assert(!votes.empty());
    // Usually all votes are close together: no need to sort.
    const std::uint64_t largest = *std::max_element(votes.begin(), votes.end());
    const std::uint64_t least = subtract_or_zero(largest, max_lag);
    const auto near =
        std::count_if(votes.begin(), votes.end(), [least](std::uint64_t v) { return v >= least; });
    if (2 * static_cast<std::size_t>(near) >= votes.size()) return largest;

    std::sort(votes.begin(), votes.end(), std::greater<>());
    std::size_t supporters = 0;
    for (const std::uint64_t vote : votes) {
        while (supporters < votes.size() && votes[supporters] >= subtract_or_zero(vote, max_lag))
            ++supporters;
        if (2 * supporters >= votes.size()) return vote;
    }
    return votes.back();
}

/// a - b, saturated to the range of the result.
std::int64_t signed_difference(std::uint64_t a, std::uint64_t b) {
    constexpr std::int64_t max = std::numeric_limits<std::int64_t>::max();
    const std::uint64_t d = time_between(a, b);
    const std::int64_t size = d > static_cast<std::uint64_t>(max) ? max : static_cast<std::int64_t>(d);
    return a < b ? -size : size;
}

}  // namespace

bool SourceTracker::active(const Source& source, std::int64_t now_ns) const {
    if (!source.frame_ns || now_ns - *source.frame_ns >= options_.source_timeout_ns) return false;
    return !source.sequence.ended() || source.sequence.gaps() > 0;
}

bool SourceTracker::lagging(const Source& source) const {
    return reference_ && source.time.settled() &&
           add_or_max(source.time.progress(), options_.max_lag) < *reference_;
}

bool SourceTracker::holds(const Source& source, std::int64_t now_ns) const {
    return active(source, now_ns) && !source.unresolved && !lagging(source);
}

/// The time on which the sources other than `without` agree.
std::optional<std::uint64_t> SourceTracker::agreed_time(std::int64_t now_ns, std::size_t without) const {
    std::size_t all = 0;
    std::size_t heard_lately = 0;
    votes_.clear();
    for (std::size_t i = 0; i < sources_.size(); ++i) {
        const Source& source = sources_[i];
        if (i == without || !source.time.settled()) continue;
        const bool is_active = active(source, now_ns);
        if (is_active) {
            ++all;
            if (!source.unresolved) votes_.push_back(source.time.progress());
        }
        const bool ended = source.sequence.ended();
        if (is_active || (!ended && now_ns - *source.frame_ns < lately * options_.source_timeout_ns))
            ++heard_lately;
    }
    if (2 * votes_.size() < all && 2 * all >= heard_lately) {
        votes_.clear();
        for (std::size_t i = 0; i < sources_.size(); ++i) {
            const Source& source = sources_[i];
            if (i == without || !source.time.settled() || !active(source, now_ns)) continue;
            votes_.push_back(source.time.progress());
        }
    }
    if (votes_.empty()) return std::nullopt;
    return largest_supported(votes_, options_.max_lag);
}

void SourceTracker::update_reference(std::int64_t now_ns) {
    reference_ = agreed_time(now_ns, nobody);
    updated_ns_ = now_ns;
    if (!reference_) return;
    leading_above_ = add_or_max(*reference_, options_.max_lag);
    for (Source& source : sources_) {
        if (!source.time.settled() || !active(source, now_ns)) continue;
        const std::uint64_t progress = source.time.progress();
        if (progress > leading_above_) {
            source.unresolved = true;
        } else if (!lagging(source)) {
            source.unresolved = false;
        }
    }
}

/// Decides whether the others contradict the time to which a source has moved.
void SourceTracker::reconsider(std::size_t index, std::int64_t now_ns, std::uint64_t tolerance) {
    Source& source = sources_[index];
    const auto others = agreed_time(now_ns, index);
    source.unresolved = others && time_between(source.time.progress(), *others) > tolerance;
}

bool SourceTracker::waiting_for_expected(std::int64_t now_ns) const {
    if (options_.expected.empty()) return false;
    if (first_frame_ns_ && now_ns - *first_frame_ns_ >= options_.source_timeout_ns) return false;
    // The expected sources come first in sources_.
    const auto end = sources_.begin() + static_cast<std::ptrdiff_t>(options_.expected.size());
    return std::any_of(sources_.begin(), end, [](const Source& s) { return !s.time.anchored(); });
}

/// The newest believable frame. Sources with unknown progress count only if there are no others.
std::optional<std::uint64_t> SourceTracker::newest_frame() const {
    std::optional<std::uint64_t> newest;
    std::optional<std::uint64_t> doubtful;
    for (const Source& source : sources_) {
        if (!source.newest) continue;
        auto& best = source.time.settled() ? newest : doubtful;
        best = std::max(best.value_or(0), *source.newest);
    }
    return newest ? newest : doubtful;
}

std::uint64_t SourceTracker::watermark(std::int64_t now_ns, std::uint64_t latest_pending_time) {
    update_reference(now_ns);
    if (waiting_for_expected(now_ns)) return watermark_;
    bool held = false;
    std::uint64_t lowest = std::numeric_limits<std::uint64_t>::max();
    for (const Source& source : sources_) {
        if (!holds(source, now_ns)) continue;
        held = true;
        lowest = std::min(lowest, source.time.progress());
    }
    std::uint64_t candidate = 0;
    if (held) {
        candidate = subtract_or_zero(subtract_or_zero(lowest, options_.max_disorder), options_.max_offset);
    } else if (const auto newest = newest_frame()) {
        // Pending singles further ahead come from a wild first frame: they must not move the watermark.
        const std::uint64_t reach = add_or_max(add_or_max(*newest, options_.max_jump), options_.max_offset);
        candidate = std::max(*newest, std::min(latest_pending_time, reach));
        candidate = add_or_max(candidate, add_or_max(options_.max_offset, options_.flush_reach));
        candidate = add_or_max(candidate, 1);
    }
    watermark_ = std::max(watermark_, candidate);
    return watermark_;
}

void SourceTracker::restart_watermark() {
    watermark_ = 0;
    reference_.reset();
    updated_ns_.reset();
    leading_above_ = std::numeric_limits<std::uint64_t>::max();
    for (Source& source : sources_) {
        source.newest.reset();
        source.unresolved = false;
    }
}

SourceState SourceTracker::state_of(const Source& source, std::int64_t now_ns) const {
    if (source.time.jumping()) return SourceState::jumping;
    if (source.sequence.ended()) return SourceState::ended;
    if (!active(source, now_ns)) return SourceState::silent;
    if (!source.time.settled()) return SourceState::active;
    if (lagging(source)) return SourceState::lagging;
    if (source.unresolved) return SourceState::leading;
    return SourceState::active;
}

TrackerStatus SourceTracker::status(std::int64_t now_ns) const {
    TrackerStatus t;
    t.watermark = watermark_;
    t.reference = reference_;
    // The reference is as old as the latest watermark; the sources have advanced since.
    const auto agreed = agreed_time(now_ns, nobody);
    t.sources.reserve(sources_.size());
    bool anybody = false;
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
        if (options_.framing == net::Framing::sequenced) s.lost = source.sequence.lost();
        s.sequence = source.sequence.counts();
        s.jumped_datagrams = source.jumped_datagrams;
        s.clock_jumps = source.clock_jumps;
        s.progress = progress;
        if (agreed && source.time.settled()) s.skew = signed_difference(progress, *agreed);
        s.last_seen = source.seen_ns;
        if (holds(source, now_ns)) {
            anybody = true;
            if (progress < lowest) {
                lowest = progress;
                t.holding = t.sources.size();
            }
        }
        t.sources.push_back(s);
    }
    t.behind_watermark = anybody && reference_ && *reference_ < watermark_;
    return t;
}

}  // namespace petacq::daemon
