// The reference and the members of SourceTracker: the rules 1 to 5 in source_tracker.hpp.
#include <algorithm>
#include <cassert>

#include "daemon/tracking/saturate.hpp"
#include "daemon/tracking/source_tracker.hpp"

namespace petacq::daemon {

namespace {

/// A source that is proven alone waits this many timeouts for the other expected sources.
constexpr std::int64_t timeouts_for_expected = 10;
/// Clocks of the host and of the detector may differ by a part in so many, and a quarter of max_disorder.
constexpr std::uint64_t clock_tolerance = 8192;

}  // namespace

bool SourceTracker::active(const Source& source, std::int64_t now_ns) const {
    if (!source.frame_ns || now_ns - *source.frame_ns >= options_.source_timeout_ns) return false;
    return !source.sequence.ended() || source.sequence.gaps() > 0;
}

/// Where detector time should be according to the clock of the host.
std::uint64_t SourceTracker::host_reference(std::int64_t now_ns) const {
    const std::uint64_t elapsed = ticks_in(now_ns - base_ns_);
    const std::uint64_t tolerance = add_or_max(elapsed / clock_tolerance, options_.max_disorder / 4);
    return add_or_max(base_, add_or_max(elapsed, tolerance));
}

void SourceTracker::decide(std::int64_t now_ns) {
    decided_ns_ = now_ns;
    undecided_ = 0;
    changed_ = false;
    if (!reference_) {
        establish(now_ns, false);
        if (!reference_) return;
    }
    set_place(now_ns);
    admit_members(now_ns);
    if (options_.framing == net::Framing::bare) find_successor(now_ns);
    advance_reference(now_ns);
    look_elsewhere(now_ns);
}

void SourceTracker::set_place(std::int64_t now_ns) {
    place_low_ = subtract_or_zero(*reference_, options_.max_lag);
    const std::uint64_t present = std::max(*reference_, host_reference(now_ns));
    place_high_ = add_or_max(present, options_.max_lag);
    believed_high_ = std::min(add_or_max(present, options_.max_jump), believed_until_);
}

/// Rule 1.
void SourceTracker::establish(std::int64_t now_ns, bool alone) {
    if (!first_proven_ns_) return;
    scratch_.clear();
    for (const Source& source : sources_)
        if (source.time.proven()) scratch_.push_back(source.time.progress());
    const std::int64_t patience = options_.source_timeout_ns * (expected_ == 0 ? 1 : timeouts_for_expected);
    alone = alone || expected_ == 1 || now_ns - *first_proven_ns_ >= patience;
    const Group group = agreeing();
    if (group.size >= 2 || (group.size == 1 && alone)) begin_time(group, now_ns);
}

void SourceTracker::establish_now(std::int64_t now_ns) {
    if (!reference_) establish(now_ns, true);
}

/// Finds the largest group of times in scratch_ that agree; if several are equally large, the lowest one.
/// Sorts scratch_.
SourceTracker::Group SourceTracker::agreeing() const {
    std::sort(scratch_.begin(), scratch_.end());
    Group best;
    for (std::size_t low = 0, end = 0; low < scratch_.size(); ++low) {
        while (end < scratch_.size() && scratch_[end] - scratch_[low] <= options_.max_lag)
            ++end;
        if (end - low > best.size)
            best = {end - low, scratch_[low], scratch_[(low + end) / 2], scratch_[end - 1]};
    }
    return best;
}

/// Makes the sources of the group, and no others, the members.
void SourceTracker::begin_time(const Group& group, std::int64_t now_ns) {
    members_ = 0;
    newest_ = 0;
    for (Source& source : sources_) {
        const std::uint64_t progress = source.time.progress();
        source.member = false;
        if (source.time.proven() && group.low <= progress && progress <= group.high) admit(source);
    }
    set_reference(group.median, now_ns);
}

/// Sets a reference that no single source can have moved.
void SourceTracker::set_reference(std::uint64_t reference, std::int64_t now_ns) {
    reference_ = base_ = reference;
    base_ns_ = std::min(heard_ns_, now_ns);
    back_ = Back::no;
    back_since_ns_.reset();
    set_place(now_ns);
}

/// Rule 3.
void SourceTracker::admit(Source& source) {
    source.member = true;
    source.moved = false;
    ++members_;
    source.first = source.times.earliest;
    newest_ = std::max(newest_, source.times.newest);
}

std::uint64_t SourceTracker::earliest() const {
    std::uint64_t first = UINT64_MAX;
    std::uint64_t second = UINT64_MAX;
    for (const Source& source : sources_) {
        if (!source.member) continue;
        second = std::min(second, std::max(first, source.first));
        first = std::min(first, source.first);
    }
    const bool alone = members_ > 2 && second - first > options_.max_disorder;
    return alone ? second : first;
}

std::uint64_t SourceTracker::first_of_members() const {
    std::uint64_t first = UINT64_MAX;
    for (const Source& source : sources_)
        if (source.member) first = std::min(first, source.first);
    return first;
}

void SourceTracker::admit_members(std::int64_t now_ns) {
    for (Source& source : sources_) {
        if (!in_place(source) || !active(source, now_ns)) continue;
        source.moved = false;
        if (!source.member) admit(source);
    }
}

/// Rule 3, for one silent member: a decision takes a few steps for each source, and no more.
void SourceTracker::find_successor(std::int64_t now_ns) {
    for (std::size_t i = 0; i < sources_.size(); ++i) {
        next_silent_ = next_silent_ + 1 < sources_.size() ? next_silent_ + 1 : 0;
        Source& old = sources_[next_silent_];
        if (!old.member || active(old, now_ns)) continue;
        const auto found = std::find_if(sources_.begin(), sources_.end(), [&](const Source& s) {
            return !s.successor && s.time.proven() && active(s, now_ns) && s.address == old.address &&
                   *s.first_seen_ns > *old.seen_ns && (s.bdms & old.bdms).any();
        });
        if (found == sources_.end()) return;
        found->successor = old.succeeded = true;
        old.member = false;
        if (found->member) {
            --members_;
        } else {
            found->member = found->moved = true;  // it is proven and not in place
        }
        return;
    }
}

/// The upper median, so that of two sources the one behind lags.
std::optional<std::uint64_t> SourceTracker::median_vote(std::int64_t now_ns) const {
    scratch_.clear();
    for (const Source& source : sources_)
        if (votes(source, now_ns)) scratch_.push_back(source.time.progress());
    if (scratch_.empty()) return std::nullopt;
    const auto middle = scratch_.begin() + static_cast<std::ptrdiff_t>(scratch_.size() / 2);
    std::nth_element(scratch_.begin(), middle, scratch_.end());
    return *middle;
}

/// When a vote got there. Others may have been heard long after it: the first ones after a pause of all.
std::int64_t SourceTracker::heard_at(std::uint64_t progress, std::int64_t now_ns) const {
    std::optional<std::int64_t> heard;
    for (const Source& source : sources_) {
        if (source.time.progress() != progress || !votes(source, now_ns)) continue;
        heard = std::max(heard.value_or(*source.frame_ns), *source.frame_ns);
    }
    return heard.value_or(heard_ns_);
}

/// Rule 2.
void SourceTracker::advance_reference(std::int64_t now_ns) {
    const auto median = median_vote(now_ns);
    if (!median) return;
    if (scratch_.size() < safe_votes && scratch_.size() < members_) {
        reference_ = std::max(*reference_, std::min(*median, host_reference(now_ns)));
    } else {
        reference_ = *median;
        if (*median != base_) base_ns_ = heard_at(*median, now_ns);
        base_ = *median;
    }
    set_place(now_ns);
}

/// Rules 4 and 5.
void SourceTracker::look_elsewhere(std::int64_t now_ns) {
    back_ = Back::no;
    const bool single = members_ == 1;
    bool supported = false;
    std::size_t moved = 0;
    std::size_t others = 0;
    for (const Source& source : sources_) {
        if (!source.time.proven() || !active(source, now_ns)) continue;
        if (in_place(source))
            supported = supported || source.member;
        else if (source.member && source.moved)
            ++moved;
        else if (!source.member)
            ++others;
    }
    const bool majority = 2 * moved > members_;
    if (!majority && !(single && others >= 2)) return back_since_ns_.reset();

    scratch_.clear();
    for (const Source& source : sources_) {
        if (!active(source, now_ns) || in_place(source) || !source.time.proven()) continue;
        if (majority ? source.member && source.moved : !source.member)
            scratch_.push_back(source.time.progress());
    }
    const Group group = agreeing();
    if (majority ? 2 * group.size <= members_ : group.size < 2) return back_since_ns_.reset();
    if (group.low > *reference_) {
        if (!majority) return begin_time(group, now_ns);
        set_reference(group.median, now_ns);
        for (Source& source : sources_)
            if (source.member && in_place(source)) newest_ = std::max(newest_, source.times.newest);
        return;
    }
    back_group_ = group;
    if (!majority) {
        back_ = Back::replaced;
        return;
    }
    if (!back_since_ns_) back_since_ns_ = now_ns;
    if (!supported || now_ns - *back_since_ns_ >= options_.source_timeout_ns) back_ = Back::common_reset;
}

bool SourceTracker::supported(std::int64_t now_ns) const {
    if (members_ == 1 && expected_ > 1) return false;
    return std::any_of(sources_.begin(), sources_.end(),
                       [&](const Source& source) { return votes(source, now_ns); });
}

bool SourceTracker::deserted(std::int64_t now_ns) const {
    bool elsewhere = false;
    for (const Source& source : sources_) {
        if (votes(source, now_ns)) return false;
        elsewhere = elsewhere || (reference_ && active(source, now_ns));
    }
    return elsewhere;
}

void SourceTracker::allow_repetition(std::int64_t now_ns) {
    const auto sends = [&](const Source& source) { return active(source, now_ns); };
    if (std::none_of(sources_.begin(), sources_.end(), sends)) ++period_;
}

void SourceTracker::follow_reset(std::int64_t now_ns) {
    assert(back_ != Back::no);
    watermark_ = 0;
    begin_time(back_group_, now_ns);
}

void SourceTracker::restart_watermark() {
    watermark_ = 0;
    reference_.reset();
    first_proven_ns_.reset();
    members_ = 0;
    newest_ = 0;
    back_ = Back::no;
    back_since_ns_.reset();
    for (Source& source : sources_) {
        source.time = Source(options_).time;
        source.frame_ns.reset();
        source.member = false;
    }
}

}  // namespace petacq::daemon
