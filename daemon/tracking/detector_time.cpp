#include "daemon/tracking/detector_time.hpp"

#include <algorithm>
#include <cassert>

namespace petacq::daemon {

namespace {

/// A source that is proven alone waits this many timeouts for the other expected sources.
constexpr std::int64_t timeouts_for_expected = 10;
/// Clocks of the host and of the detector may differ by one part in this many, and a quarter of max_disorder.
constexpr std::uint64_t clock_tolerance = 8192;
/// So many members in place cannot be led away by one of them.
constexpr std::size_t safe_votes = 3;
/// Host time between two decisions, unless something has changed.
constexpr std::int64_t decision_interval_ns = 1'000'000;
/// A decision takes one step for each source. At most this many steps are taken for each datagram.
constexpr std::size_t steps_per_datagram = 16;

}  // namespace

std::uint64_t DetectorTime::ticks_in(std::int64_t ns) const {
    return static_cast<std::uint64_t>(
        std::clamp(static_cast<double>(ns) * options_.ticks_per_ns, 0.0, 0x1p62));
}

bool DetectorTime::active(const Source& source, std::int64_t now_ns) const {
    if (!source.frame_ns || now_ns - *source.frame_ns >= options_.source_timeout_ns) return false;
    return !source.sequence.ended() || source.sequence.gaps() > 0;
}

/// Where detector time should be according to the clock of the host.
std::uint64_t DetectorTime::host_reference(std::int64_t now_ns) const {
    const std::uint64_t elapsed = ticks_in(now_ns - base_ns_);
    const std::uint64_t tolerance = add_or_max(elapsed / clock_tolerance, options_.max_disorder / 4);
    return add_or_max(base_, add_or_max(elapsed, tolerance));
}

/// Lets the clock of the source follow a datagram with valid frames. Returns the time of it that is believed.
std::uint64_t DetectorTime::follow(Source& source, const DatagramTimes& times, std::int64_t now_ns) {
    std::uint64_t believed = 0;
    // Datagrams that arrive together are common.
    const bool paused = source.frame_ns && *source.frame_ns != now_ns;
    const std::uint64_t quiet = paused ? ticks_in(now_ns - *source.frame_ns) : 0;
    const TimeGuard::Step step = source.time.observe(times, quiet, believed);
    const bool in_row = step == TimeGuard::Step::unconfirmed;
    if (in_row && source.time.row() == 1) source.row_times = {};
    if (step == TimeGuard::Step::proven || step == TimeGuard::Step::moved) source.times = source.row_times;
    Source::FrameTimes& range = in_row ? source.row_times : source.times;
    for (const std::uint64_t time : {times.first, times.last})
        if (source.time.within(time, believed)) range.add(time);

    if (!in_row) source.frame_ns = now_ns;
    if (!in_row && (source.member || !reference_)) heard_ns_ = now_ns;
    switch (step) {
        case TimeGuard::Step::followed:
            // A step of the clock that is shorter than a jump.
            if (source.member && source.time.progress() > place_high_) source.moved = changed_ = true;
            break;
        case TimeGuard::Step::unconfirmed:
            break;
        case TimeGuard::Step::proven:
            if (!first_proven_ns_) first_proven_ns_ = now_ns;
            source.believed = changed_ = true;
            break;
        case TimeGuard::Step::moved:
            ++source.clock_jumps;
            source.moved = changed_ = true;
            break;
        case TimeGuard::Step::stepped_back:
            ++source.steps_back;
            source.moved = changed_ = true;
            break;
    }
    if (changed_) decide_if_due(now_ns);
    return believed;
}

void DetectorTime::consider(const Source& source, const DatagramTimes& times, Verdict& verdict) const {
    verdict.open = false;
    if (!reference_) return;
    const bool proven = source.time.proven();
    const std::uint64_t progress = source.time.progress();
    verdict.time_low =
        subtract_or_zero(proven ? std::min(*reference_, progress) : *reference_, options_.max_jump);
    verdict.time_high = believed_high_;
    if (source.member && in_place(source)) believe_member(verdict);
    const bool leading = proven && !in_place(source) && progress > *reference_;
    if (!leading && (verdict.believes(times.first) || verdict.believes(times.last))) return;
    const bool ahead = times.first > *reference_ && times.last > *reference_;
    verdict.open = source.member && (source.time.jumping() || (leading && ahead));
    verdict.refuse_all();
}

void DetectorTime::judge(Source& source, const DatagramTimes& times, std::uint64_t believed,
                         Verdict& verdict) {
    if (!reference_) return;
    consider(source, times, verdict);
    if (verdict.refuses_all()) {
        if (!verdict.open) ++source.jumped_datagrams;
        return;
    }
    if (!source.member || !in_place(source)) return;
    for (const std::uint64_t time : {times.first, times.last}) {
        if (time < place_low_ || !source.time.within(time, believed) || !verdict.believes(time)) continue;
        source.first = std::min(source.first, time);
        newest_ = std::max(newest_, time);
    }
}

/// Bounds the cost of a datagram, however many sources there are.
void DetectorTime::decide_if_due(std::int64_t now_ns) {
    if (now_ns - decided_ns_ >= decision_interval_ns ||
        (changed_ && steps_per_datagram * undecided_ >= sources_.all().size())) {
        decide(now_ns);
    }
}

std::uint64_t DetectorTime::present(std::int64_t now_ns) const {
    return std::max(*reference_, host_reference(now_ns));
}

void DetectorTime::decide(std::int64_t now_ns) {
    decided_ns_ = now_ns;
    undecided_ = 0;
    changed_ = false;
    establish(now_ns, false);
    if (!reference_) return;
    set_place(now_ns);
    admit_members(now_ns);
    if (options_.framing == net::Framing::bare) find_successor(now_ns);
    advance_reference(now_ns);
    look_elsewhere(now_ns);
}

void DetectorTime::set_place(std::int64_t now_ns) {
    place_low_ = subtract_or_zero(*reference_, options_.max_lag);
    const std::uint64_t present = this->present(now_ns);
    place_high_ = add_or_max(present, options_.max_lag);
    believed_high_ = std::min(add_or_max(present, options_.max_jump), believed_until_);
}

/// Sets scratch_ to the progress of the sources for which `takes` holds.
template <class Takes>
void DetectorTime::gather(Takes takes) const {
    scratch_.clear();
    for (const Source& source : sources_.all())
        if (takes(source)) scratch_.push_back(source.time.progress());
}

/// The largest group of these sources that agree; if several are equally large, the lowest one.
template <class Takes>
DetectorTime::AgreeingSources DetectorTime::agreeing(Takes takes) const {
    gather(takes);
    std::sort(scratch_.begin(), scratch_.end());
    AgreeingSources best;
    for (std::size_t low = 0, end = 0; low < scratch_.size(); ++low) {
        while (end < scratch_.size() && scratch_[end] - scratch_[low] <= options_.max_lag)
            ++end;
        if (end - low > best.size)
            best = {end - low, scratch_[low], scratch_[(low + end) / 2], scratch_[end - 1]};
    }
    return best;
}

/// Rule 1.
void DetectorTime::establish(std::int64_t now_ns, bool alone) {
    if (reference_ || !first_proven_ns_) return;
    const std::int64_t patience =
        options_.source_timeout_ns * (sources_.expected().empty() ? 1 : timeouts_for_expected);
    alone = alone || sources_.expected().size() == 1 || now_ns - *first_proven_ns_ >= patience;
    const AgreeingSources group = agreeing([](const Source& source) { return source.time.proven(); });
    if (group.size >= 2 || (group.size == 1 && alone)) begin_time(group, now_ns);
}

/// Makes the sources of the group, and no others, the members.
void DetectorTime::begin_time(const AgreeingSources& group, std::int64_t now_ns) {
    members_ = 0;
    newest_ = 0;
    for (Source& source : sources_.all()) {
        const std::uint64_t progress = source.time.progress();
        source.member = false;
        if (source.time.proven() && group.low <= progress && progress <= group.high) admit(source);
    }
    set_reference(group.median, now_ns);
}

/// Sets a reference that no single source can have moved.
void DetectorTime::set_reference(std::uint64_t reference, std::int64_t now_ns) {
    reference_ = base_ = reference;
    base_ns_ = std::min(heard_ns_, now_ns);
    back_ = Back::no;
    back_since_ns_.reset();
    set_place(now_ns);
}

/// Rule 3.
void DetectorTime::admit(Source& source) {
    source.member = true;
    source.moved = false;
    ++members_;
    source.first = source.times.earliest;
    newest_ = std::max(newest_, source.times.newest);
}

std::uint64_t DetectorTime::earliest() const {
    std::uint64_t first = UINT64_MAX;
    std::uint64_t second = UINT64_MAX;
    for (const Source& source : sources_.all()) {
        if (!source.member) continue;
        second = std::min(second, std::max(first, source.first));
        first = std::min(first, source.first);
    }
    const bool alone = members_ > 2 && second - first > options_.max_disorder;
    return alone ? second : first;
}

std::uint64_t DetectorTime::first_of_members() const {
    std::uint64_t first = UINT64_MAX;
    for (const Source& source : sources_.all())
        if (source.member) first = std::min(first, source.first);
    return first;
}

void DetectorTime::admit_members(std::int64_t now_ns) {
    for (Source& source : sources_.all()) {
        if (!in_place(source) || !active(source, now_ns)) continue;
        source.moved = false;
        if (!source.member) admit(source);
    }
}

/// Rule 3, for one silent member: a decision takes a few steps for each source, and no more.
void DetectorTime::find_successor(std::int64_t now_ns) {
    const std::span<Source> all = sources_.all();
    for (std::size_t i = 0; i < all.size(); ++i) {
        next_silent_ = next_silent_ + 1 < all.size() ? next_silent_ + 1 : 0;
        Source& old = all[next_silent_];
        if (!old.member || active(old, now_ns)) continue;
        const auto found = std::find_if(all.begin(), all.end(), [&](const Source& s) {
            return !s.successor && s.time.proven() && active(s, now_ns) && s.address == old.address &&
                   *s.first_seen > *old.last_seen && s.bdms.intersects(old.bdms);
        });
        if (found == all.end()) return;
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

/// The upper one, so that of two sources the one behind lags.
std::uint64_t DetectorTime::scratch_median() const {
    const auto middle = scratch_.begin() + static_cast<std::ptrdiff_t>(scratch_.size() / 2);
    std::nth_element(scratch_.begin(), middle, scratch_.end());
    return *middle;
}

std::optional<std::uint64_t> DetectorTime::median(std::int64_t now_ns) const {
    gather([&](const Source& source) { return votes(source, now_ns); });
    return scratch_.empty() ? std::nullopt : std::optional(scratch_median());
}

std::uint64_t DetectorTime::reference_of(std::span<const Source* const> sources, std::int64_t now_ns) const {
    scratch_.clear();
    for (const Source* source : sources)
        scratch_.push_back(source->time.progress());
    const std::uint64_t median = scratch_median();
    return safe(scratch_.size()) ? median : std::min(median, host_reference(now_ns));
}

bool DetectorTime::safe(std::size_t votes) const {
    return votes >= safe_votes || votes >= members_;
}

/// When a vote got there. Others may have been heard long after it: the first ones after a pause of all.
std::int64_t DetectorTime::heard_at(std::uint64_t progress, std::int64_t now_ns) const {
    std::optional<std::int64_t> heard;
    for (const Source& source : sources_.all()) {
        if (source.time.progress() != progress || !votes(source, now_ns)) continue;
        heard = std::max(heard.value_or(*source.frame_ns), *source.frame_ns);
    }
    return heard.value_or(heard_ns_);
}

/// Rule 2.
void DetectorTime::advance_reference(std::int64_t now_ns) {
    const auto median = this->median(now_ns);
    if (!median) return;
    if (safe(scratch_.size())) {
        reference_ = *median;
        if (*median != base_) base_ns_ = heard_at(*median, now_ns);
        base_ = *median;
    } else {
        reference_ = std::max(*reference_, std::min(*median, host_reference(now_ns)));
    }
    set_place(now_ns);
}

/// Rules 4 and 5.
void DetectorTime::look_elsewhere(std::int64_t now_ns) {
    back_ = Back::no;
    const bool single = members_ == 1;
    bool supported = false;
    std::size_t moved = 0;
    std::size_t others = 0;
    for (const Source& source : sources_.all()) {
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

    const AgreeingSources group = agreeing([&](const Source& source) {
        return source.time.proven() && active(source, now_ns) && !in_place(source) &&
               (majority ? source.member && source.moved : !source.member);
    });
    if (majority ? 2 * group.size <= members_ : group.size < 2) return back_since_ns_.reset();
    if (group.low > *reference_) {
        if (!majority) return begin_time(group, now_ns);
        set_reference(group.median, now_ns);
        for (Source& source : sources_.all())
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

/// Not of a wild time: a frame further back than the disorder allows is late, whatever its time says.
void DetectorTime::note_earlier(std::uint32_t source, std::uint64_t time) {
    Source& s = sources_[source];
    const auto lower = [&](std::uint64_t& earliest) {
        if (earliest != UINT64_MAX && time < earliest && earliest - time <= options_.max_disorder)
            earliest = time;
    };
    lower(s.times.earliest);
    lower(s.row_times.earliest);
    if (s.member) lower(s.first);
}

Verdict DetectorTime::believed_times() const {
    if (!reference_) return {};
    return {subtract_or_zero(*reference_, options_.max_jump), believed_high_};
}

Verdict DetectorTime::held_times(std::uint32_t source) const {
    Verdict verdict = believed_times();
    if (sources_[source].member)
        verdict.time_low = std::min(verdict.time_low, own_times(source, false).time_low);
    return verdict;
}

Verdict DetectorTime::own_times(std::uint32_t source, bool unproven) const {
    const Source& s = sources_[source];
    Verdict verdict;
    const Source::FrameTimes& range = s.time.proven() ? s.times : s.row_times;
    if (!s.time.consistent() || !(unproven || s.time.proven())) {
        verdict.refuse_all();
    } else if (range.earliest <= range.newest) {
        verdict.time_low = subtract_or_zero(range.earliest, options_.max_jump);
        verdict.time_high = add_or_max(range.newest, options_.max_jump);
    }
    return verdict;
}

bool DetectorTime::any_votes(std::int64_t now_ns) const {
    return std::ranges::any_of(sources_.all(), [&](const Source& source) { return votes(source, now_ns); });
}

bool DetectorTime::supported(std::int64_t now_ns) const {
    return (members_ > 1 || sources_.expected().size() <= 1) && any_votes(now_ns);
}

bool DetectorTime::deserted(std::int64_t now_ns) const {
    const auto is_active = [&](const Source& source) { return active(source, now_ns); };
    return reference_ && std::ranges::any_of(sources_.all(), is_active) && !any_votes(now_ns);
}

void DetectorTime::follow_reset(std::int64_t now_ns) {
    assert(back_ != Back::no);
    for (Source& source : sources_.all())
        source.newest_before.reset();  // in another time
    begin_time(back_group_, now_ns);
}

void DetectorTime::restart(std::int64_t now_ns) {
    reference_.reset();
    first_proven_ns_.reset();
    members_ = 0;
    newest_ = 0;
    back_ = Back::no;
    back_since_ns_.reset();
    for (Source& source : sources_.all()) {
        const Source::FrameTimes& range = source.time.proven() ? source.times : source.row_times;
        const bool ended = source.sequence.ended() && source.sequence.gaps() == 0;
        const bool heard = source.last_seen && now_ns - *source.last_seen < options_.source_timeout_ns;
        if (ended || !heard)
            source.newest_before.reset();
        else if (range.earliest <= range.newest)
            source.newest_before = range.newest;
        source.times = source.row_times = {};
        source.forget_clock();
        source.member = false;
    }
}

std::uint64_t DetectorTime::end_of_time_before(std::uint64_t from, std::uint64_t max_offset) const {
    const std::uint64_t latest = add_or_max(from, ticks_in(options_.source_timeout_ns));
    std::uint64_t end = from;
    for (const Source& source : sources_.all()) {
        if (source.newest_before && *source.newest_before <= latest)
            end = std::max(end, add_or_max(*source.newest_before, max_offset + 1));
    }
    return end;
}

}  // namespace petacq::daemon
