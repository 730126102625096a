#include "daemon/tracking/source_tracker.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "daemon/tracking/saturate.hpp"

namespace petacq::daemon {

namespace {

/// Host time between two decisions about detector time, unless something has changed.
constexpr std::int64_t decision_interval_ns = 1'000'000;
/// A decision takes a step for each source; so many steps are allowed for each datagram.
constexpr std::size_t steps_per_datagram = 16;

/// The content of a datagram in a period, so that a reused number is not mistaken for a copy.
std::uint32_t content_in(std::uint64_t period, std::uint32_t content) {
    return content ^ static_cast<std::uint32_t>(period * 0x9E3779B9U);
}

DatagramTimes first_of(const net::Datagram& train) {
    return {train.first_time, train.last_time, train.frames};
}

DatagramTimes end_of(const net::Datagram& train) {
    if (train.datagrams == 1) return first_of(train);
    return {train.end_first_time, train.end_last_time, train.frames};
}

}  // namespace

const char* name_of(SourceState state) {
    constexpr std::array names{"active", "silent", "lagging", "leading", "ended", "jumping"};
    return names.at(static_cast<std::size_t>(state));
}

SourceTracker::SourceTracker(TrackerOptions options)
    : options_(std::move(options)),
      index_of_sender_(options_.framing == net::Framing::bare ? max_sources : 0) {
    expect();
}

std::uint64_t SourceTracker::ticks_in(std::int64_t ns) const {
    return static_cast<std::uint64_t>(
        std::clamp(static_cast<double>(ns) * options_.ticks_per_ns, 0.0, 0x1p62));
}

/// Bounds the cost of a datagram, however many sources there are.
void SourceTracker::decide_if_due(std::int64_t now_ns) {
    if (now_ns - decided_ns_ >= decision_interval_ns ||
        (changed_ && steps_per_datagram * undecided_ >= sources_.size())) {
        decide(now_ns);
    }
}

/// By far the most datagrams: a member in place goes on where it was, with a datagram or a train that has
/// `first` and `end` at its ends.
bool SourceTracker::goes_on(const Source& source, const DatagramTimes& first,
                            const DatagramTimes& end) const {
    const bool in_place = place_low_ <= first.first && end.first <= place_high_;
    return reference_ && !changed_ && source.member && in_place && end.last <= believed_high_ &&
           source.time.goes_on(first, end);
}

void SourceTracker::go_on(Source& source, const DatagramTimes& first, const DatagramTimes& end,
                          std::int64_t now_ns) {
    source.time.go_on(end);
    source.frame_ns = heard_ns_ = now_ns;
    source.times.add(first.first);
    source.times.add(end.last);
    source.first = std::min(source.first, first.first);
    newest_ = std::max(newest_, end.last);
}

/// The same for all datagrams of a member in place, wherever trains begin and end.
void SourceTracker::believe_member(Verdict& verdict) const {
    verdict.time_low = subtract_or_zero(place_low_, options_.max_jump);
    verdict.time_high = believed_high_;
}

/// Lets the clock of the source follow a datagram with valid frames. Returns the time of it that is believed.
std::uint64_t SourceTracker::guard(Source& source, const DatagramTimes& times, std::int64_t now_ns) {
    std::uint64_t believed = 0;
    // Datagrams that arrive together are common.
    const bool paused = source.frame_ns && *source.frame_ns != now_ns;
    const std::uint64_t quiet = paused ? ticks_in(now_ns - *source.frame_ns) : 0;
    const TimeGuard::Step step = source.time.observe(times, quiet, believed);
    const bool in_row = step == TimeGuard::Step::unconfirmed;
    if (in_row && source.time.row() == 1) source.row_times = {};
    if (step == TimeGuard::Step::proven || step == TimeGuard::Step::moved) source.times = source.row_times;
    TickRange& range = in_row ? source.row_times : source.times;
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

/// Decides which frames of a datagram are believed.
void SourceTracker::judge(Source& source, const DatagramTimes& times, std::uint64_t believed,
                          Verdict& verdict) {
    if (!reference_) return;
    const bool proven = source.time.proven();
    const std::uint64_t progress = source.time.progress();
    const bool in_place = this->in_place(source);
    verdict.time_low =
        subtract_or_zero(proven ? std::min(*reference_, progress) : *reference_, options_.max_jump);
    verdict.time_high = believed_high_;
    if (source.member && in_place) believe_member(verdict);
    const auto takes = [&](std::uint64_t time) {
        return verdict.time_low <= time && time <= verdict.time_high;
    };
    const bool leading = proven && !in_place && progress > *reference_;
    if (leading || (!takes(times.first) && !takes(times.last))) {
        ++source.jumped_datagrams;
        return verdict.refuse_all();
    }
    if (!source.member || !in_place) return;
    for (const std::uint64_t time : {times.first, times.last}) {
        if (time < place_low_ || !source.time.within(time, believed) || !takes(time)) continue;
        source.first = std::min(source.first, time);
        newest_ = std::max(newest_, time);
    }
}

Verdict SourceTracker::observe(const net::Datagram& datagram, std::int64_t now_ns) {
    Verdict verdict;
    decide_if_due(now_ns);
    const std::size_t index = find(datagram, now_ns);
    if (index == nobody) {
        ++too_many_sources_;
        verdict.use = false;
        return verdict;
    }
    Source& source = sources_[index];
    const net::Endpoint sender_before{std::exchange(source.address, datagram.address),
                                      std::exchange(source.port, datagram.port)};
    if (!source.first_seen_ns) source.first_seen_ns = now_ns;
    source.seen_ns = now_ns;
    source.succeeded = false;
    if (options_.framing == net::Framing::sequenced) {
        const bool last = (datagram.flags & net::flag_end_of_stream) != 0;
        const std::uint64_t lost = source.sequence.lost();
        const std::uint32_t content =
            net::content_of(datagram.first_time, datagram.last_time, datagram.frames);
        const auto number = source.sequence.observe(datagram.sequence, content_in(period_, content), last);
        verdict.lost = static_cast<std::int64_t>(source.sequence.lost() - lost);
        if (is_copy(number)) {
            verdict.use = false;
            return verdict;
        }
        if (number != SequenceVerdict::in_order || verdict.lost != 0) [[unlikely]]
            watch_numbers(source,
                          {datagram.sequence,
                           datagram.frames,
                           {datagram.address, datagram.port},
                           sender_before,
                           number},
                          verdict);
        if (last) ++end_of_stream_;
        if (number == SequenceVerdict::new_stream) {
            source.time = Source(options_).time;
            source.frame_ns.reset();
            source.moved = true;
        }
    }
    ++source.datagrams;
    source.frames += datagram.frames;
    name_source(index, datagram, verdict);
    if (datagram.timed_frames == 0) {
        source.invalid_frames += datagram.frames;
        return verdict;
    }
    if (datagram.hits) source.bdms[datagram.first_bdm] = source.bdms[datagram.last_bdm] = true;
    const DatagramTimes times{datagram.first_time, datagram.last_time, datagram.timed_frames};
    ++undecided_;
    if (goes_on(source, times, times)) {
        go_on(source, times, times, now_ns);
        believe_member(verdict);
    } else {
        judge(source, times, guard(source, times, now_ns), verdict);
    }
    watch_rate(source, now_ns);
    return verdict;
}

bool SourceTracker::observe_group(const net::Group& group, std::int64_t now_ns,
                                  std::vector<Verdict>& verdicts) {
    decide_if_due(now_ns);
    of_train_.clear();
    verdicts.clear();
    for (const net::Datagram& train : group.trains()) {
        const std::size_t index = slot_of(train);
        if (index == nobody) return false;
        Source& source = sources_[index];
        if (!goes_on(source, first_of(train), end_of(train))) return false;
        if (!source.sequence.goes_on(train.sequence, train.datagrams)) return false;
        of_train_.push_back({&source, train.sequence});
        name_source(index, train, verdicts.emplace_back());
        believe_member(verdicts.back());
    }
    for (const net::Member& member : group.members()) {
        OfTrain& train = of_train_[member.train];
        train.source->sequence.remember(train.next++, content_in(period_, member.content));
        train.source->bdms[member.first_bdm] = train.source->bdms[member.last_bdm] = true;
    }
    for (std::size_t i = 0; i < of_train_.size(); ++i) {
        const net::Datagram& train = group.trains()[i];
        Source& source = *of_train_[i].source;
        source.sequence.go_on(train.datagrams);
        source.address = train.address;
        source.port = train.port;
        source.seen_ns = now_ns;
        source.succeeded = false;
        source.datagrams += train.datagrams;
        source.frames += std::uint64_t{train.frames} * train.datagrams;
        undecided_ += train.datagrams;
        go_on(source, first_of(train), end_of(train), now_ns);
        watch_rate(source, now_ns);
    }
    return true;
}

void SourceTracker::watch_rate(Source& source, std::int64_t now_ns) const {
    if (!source.time.proven() || options_.ticks_per_ns <= 0) return;
    source.rate.observe(source.time.progress(), source.clock_jumps + source.steps_back, now_ns,
                        options_.ticks_per_ns);
}

/// How the verdict on a datagram names its source.
void SourceTracker::name_source(std::size_t index, const net::Datagram& datagram, Verdict& verdict) const {
    verdict.source = static_cast<std::uint32_t>(index);
    if (options_.framing == net::Framing::sequenced) {
        verdict.tag_source = datagram.source;
    } else if (index < options_.expected_senders.size()) {
        verdict.tag_source = static_cast<std::uint16_t>(index);
    }
}

/// The datagram does not simply follow the one before.
void SourceTracker::watch_numbers(Source& source, const NumberedDatagram& datagram, Verdict& verdict) {
    verdict.lost = source.watch.observe(datagram, source.sequence);
    verdict.loss_known = !source.watch.meaningless(source.sequence);
}

/// Not of a wild time: a frame further back than the disorder allows is late, whatever its time says.
void SourceTracker::note_earlier(std::uint32_t source, std::uint64_t time) {
    Source& s = sources_[source];
    const auto lower = [&](std::uint64_t& earliest) {
        if (earliest != UINT64_MAX && time < earliest && earliest - time <= options_.max_disorder)
            earliest = time;
    };
    lower(s.times.earliest);
    lower(s.row_times.earliest);
    if (s.member) lower(s.first);
}

Verdict SourceTracker::believed_times() const {
    if (!reference_) return {};
    return {subtract_or_zero(*reference_, options_.max_jump), believed_high_};
}

Verdict SourceTracker::held_times(std::uint32_t source) const {
    Verdict verdict = believed_times();
    if (sources_[source].member)
        verdict.time_low = std::min(verdict.time_low, own_times(source, false).time_low);
    return verdict;
}

Verdict SourceTracker::own_times(std::uint32_t source, bool unproven) const {
    const Source& s = sources_[source];
    Verdict verdict;
    verdict.source = source;
    const TickRange& range = s.time.proven() ? s.times : s.row_times;
    if (!s.time.consistent() || !(unproven || s.time.proven())) {
        verdict.refuse_all();
    } else if (range.earliest <= range.newest) {
        verdict.time_low = subtract_or_zero(range.earliest, options_.max_jump);
        verdict.time_high = add_or_max(range.newest, options_.max_jump);
    }
    return verdict;
}

void SourceTracker::mark() {
    for (Source& source : sources_)
        source.sequence.mark();
}

void SourceTracker::add(const Source& source, TrackerTotals& t) {
    const SequenceCounts& c = source.sequence.counts();
    t.accepted += source.datagrams;
    t.lost += source.watch.lost(source.sequence);
    t.unnumbered += source.watch.unnumbered(source.sequence);
    t.duplicate += c.duplicate;
    t.repeated += c.repeated;
    t.recovered += c.recovered;
    t.reordered += c.reordered;
    t.restarted += c.restarted;
    t.stray += c.stray;
    t.clock_jumps += source.clock_jumps;
    t.steps_back += source.steps_back;
    t.jumped_datagrams += source.jumped_datagrams;
}

TrackerTotals SourceTracker::totals() const {
    TrackerTotals t = replaced_;
    for (const Source& source : sources_)
        add(source, t);
    t.end_of_stream = end_of_stream_;
    t.too_many_sources = too_many_sources_;
    return t;
}

}  // namespace petacq::daemon
