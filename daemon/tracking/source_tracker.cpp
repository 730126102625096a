#include "daemon/tracking/source_tracker.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace petacq::daemon {

namespace {

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

/// a - b, saturated to the range of the result.
std::int64_t signed_difference(std::uint64_t a, std::uint64_t b) {
    constexpr std::int64_t max = std::numeric_limits<std::int64_t>::max();
    const std::uint64_t d = time_between(a, b);
    const std::int64_t size = d > static_cast<std::uint64_t>(max) ? max : static_cast<std::int64_t>(d);
    return a < b ? -size : size;
}

}  // namespace

const char* name_of(SourceState state) {
    constexpr std::array names{"active", "silent", "lagging", "leading", "ended", "jumping"};
    return names.at(static_cast<std::size_t>(state));
}

SourceTracker::SourceTracker(TrackerOptions options)
    : options_(std::move(options)),
      sources_(options_),
      time_(options_, sources_),
      watermark_(options_, sources_, time_) {}

Verdict SourceTracker::observe(const net::Datagram& datagram, std::int64_t now_ns) {
    Verdict verdict;
    time_.decide_if_due(now_ns);
    const std::size_t index = sources_.take_slot(datagram, now_ns);
    if (index == SourceTable::nobody) {
        verdict.use = false;
        return verdict;
    }
    Source& source = sources_[index];
    const net::Endpoint sender_before{std::exchange(source.address, datagram.address),
                                      std::exchange(source.port, datagram.port)};
    if (!source.first_seen) source.first_seen = now_ns;
    source.last_seen = now_ns;
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
        if (last) ++source.end_of_stream;
        if (number == SequenceVerdict::new_stream) {
            source.forget_clock();
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
    if (datagram.hits) source.bdms.set(datagram.first_bdm).set(datagram.last_bdm);
    time_.observe(source, {datagram.first_time, datagram.last_time, datagram.timed_frames}, now_ns, verdict);
    watch_rate(source, now_ns);
    return verdict;
}

bool SourceTracker::observe_group(const net::Group& group, std::int64_t now_ns,
                                  std::vector<Verdict>& verdicts) {
    time_.decide_if_due(now_ns);
    of_train_.clear();
    verdicts.clear();
    for (const net::Datagram& train : group.trains()) {
        const std::size_t index = sources_.slot_of(train);
        if (index == SourceTable::nobody) return false;
        Source& source = sources_[index];
        if (!time_.goes_on(source, first_of(train), end_of(train))) return false;
        if (!source.sequence.goes_on(train.sequence, train.datagrams)) return false;
        of_train_.push_back({&source, train.sequence});
        name_source(index, train, verdicts.emplace_back());
        time_.believe_member(verdicts.back());
    }
    for (const net::Member& member : group.members()) {
        OfTrain& train = of_train_[member.train];
        train.source->sequence.remember(train.next++, content_in(period_, member.content));
        train.source->bdms.set(member.first_bdm).set(member.last_bdm);
    }
    for (std::size_t i = 0; i < of_train_.size(); ++i) {
        const net::Datagram& train = group.trains()[i];
        Source& source = *of_train_[i].source;
        source.sequence.go_on(train.datagrams);
        source.address = train.address;
        source.port = train.port;
        source.last_seen = now_ns;
        source.succeeded = false;
        source.datagrams += train.datagrams;
        source.frames += std::uint64_t{train.frames} * train.datagrams;
        time_.go_on(source, first_of(train), end_of(train), train.datagrams, now_ns);
        watch_rate(source, now_ns);
    }
    return true;
}

/// The datagram does not simply follow the one before.
void SourceTracker::watch_numbers(Source& source, const NumberedDatagram& datagram, Verdict& verdict) {
    verdict.lost = source.watch.observe(datagram, source.sequence);
    verdict.loss_known = !source.watch.meaningless(source.sequence);
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

void SourceTracker::mark() {
    for (Source& source : sources_.all())
        source.sequence.mark();
}

void SourceTracker::allow_repetition(std::int64_t now_ns) {
    const auto sends = [&](const Source& source) { return time_.active(source, now_ns); };
    if (std::ranges::none_of(sources_.all(), sends)) ++period_;
}

SourceState SourceTracker::state_of(const Source& source, std::int64_t now_ns) const {
    if (source.time.jumping()) return SourceState::jumping;
    if (source.sequence.ended() || source.succeeded) return SourceState::ended;
    if (!source.time.proven()) {
        const bool heard = source.last_seen && now_ns - *source.last_seen < options_.source_timeout_ns;
        return heard && source.time.row() > 0 ? SourceState::active : SourceState::silent;
    }
    if (!time_.active(source, now_ns)) return SourceState::silent;
    if (!time_.established() || time_.in_place(source)) return SourceState::active;
    return source.time.progress() < *time_.reference() ? SourceState::lagging : SourceState::leading;
}

TrackerStatus SourceTracker::status(std::int64_t now_ns) const {
    TrackerStatus t;
    t.watermark = watermark_.ticks();
    t.reference = time_.reference();
    t.replaced = sources_.replaced();
    t.expected = sources_.expected().size();
    // The sources have advanced since the reference was determined.
    const auto agreed = time_.median(now_ns);
    t.sources.reserve(sources_.all().size());
    for (const Source& source : sources_.all()) {
        SourceStatus s;
        static_cast<SourceCounts&>(s) = source;
        s.state = state_of(source, now_ns);
        s.numbers = source.watch.pattern(source.sequence);
        s.latest_numbers = source.watch.latest_pattern();
        s.unnumbered = source.watch.unnumbered(source.sequence);
        if (options_.framing == net::Framing::sequenced && !s.numbers)
            s.lost = source.watch.lost(source.sequence);
        s.sequence = source.sequence.counts();
        s.rate = source.rate.wrong();
        s.latest_rate = source.rate.latest();
        s.wrong_seconds = source.rate.wrong_seconds();
        s.progress = source.time.progress();
        if (agreed && source.time.proven()) s.skew = signed_difference(s.progress, *agreed);
        if (time_.votes(source, now_ns) && (!t.holding || s.progress < t.sources[*t.holding].progress))
            t.holding = t.sources.size();
        t.sources.push_back(s);
    }
    t.behind_watermark =
        time_.went_back() != DetectorTime::Back::no || (t.holding && *t.reference < t.watermark);
    return t;
}

}  // namespace petacq::daemon
