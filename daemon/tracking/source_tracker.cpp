#include "daemon/tracking/source_tracker.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "daemon/tracking/saturate.hpp"

namespace petacq::daemon {

namespace {

constexpr std::int64_t reference_life_ns = 1'000'000;
constexpr Verdict nothing{true, 1, 0};  ///< all frames are time jumps
constexpr std::size_t sender_slots = 2 * SourceTracker::max_sources;

/// Spreads a key over all bits of a word (the constant is 2^64 over the golden ratio).
std::uint64_t mix(std::uint64_t v) {
    v *= 0x9E3779B97F4A7C15ULL;
    return v ^ (v >> 32);
}

/// A hash of the content of a datagram, so that a reused number is not mistaken for a duplicate.
std::uint16_t content_of(const net::Datagram& d) {
    return static_cast<std::uint16_t>(mix(mix(d.first_time + d.frames) + d.last_time) >> 16);
}

}  // namespace

const char* name_of(SourceState state) {
    constexpr std::array names{"active", "silent", "lagging", "leading", "ended", "jumping"};
    return names.at(static_cast<std::size_t>(state));
}

SourceTracker::SourceTracker(TrackerOptions options) : options_(std::move(options)) {
    if (options_.framing == net::Framing::bare) {
        index_of_sender_.resize(sender_slots);
        options_.expected.clear();
        return;
    }
    index_of_id_.resize(1U << 16);
    if (options_.expected.size() > max_sources) {
        throw std::invalid_argument("at most " + std::to_string(max_sources) +
                                    " sources can be expected, not " +
                                    std::to_string(options_.expected.size()));
    }
    for (const std::uint16_t id : options_.expected) {
        if (index_of_id_[id] != 0) {
            throw std::invalid_argument("source " + std::to_string(id) + " is listed twice");
        }
        sources_[add_source()].id = id;
        index_of_id_[id] = static_cast<std::uint16_t>(sources_.size());
    }
}

std::size_t SourceTracker::add_source() {
    if (sources_.size() == max_sources) return nobody;
    sources_.emplace_back(options_);
    return sources_.size() - 1;
}

std::size_t SourceTracker::find(const net::Datagram& d) {
    if (options_.framing == net::Framing::sequenced) {
        std::uint16_t& entry = index_of_id_[d.source];
        if (entry != 0) return entry - 1U;
        const std::size_t index = add_source();
        if (index == nobody) return nobody;
        sources_[index].id = d.source;
        entry = static_cast<std::uint16_t>(index + 1);
        return index;
    }
    const std::uint64_t key = (static_cast<std::uint64_t>(d.address) << 16) | d.port;
    for (std::size_t i = mix(key) % sender_slots;; i = (i + 1) % sender_slots) {
        Sender& entry = index_of_sender_[i];
        if (entry.index != 0 && entry.key == key) return entry.index - 1U;
        if (entry.index != 0) continue;
        const std::size_t index = add_source();
        if (index == nobody) return nobody;
        entry = {key, static_cast<std::uint16_t>(index + 1)};
        return index;
    }
}

Verdict SourceTracker::observe(const net::Datagram& datagram, std::int64_t now_ns) {
    const std::size_t index = find(datagram);
    if (index == nobody) {
        ++too_many_sources_;
        return {false, 0, 0};
    }
    Source& source = sources_[index];
    source.address = datagram.address;
    source.port = datagram.port;
    source.seen_ns = now_ns;
    if (options_.framing == net::Framing::sequenced) {
        const bool last = (datagram.flags & net::flag_end_of_stream) != 0;
        const auto verdict = source.sequence.observe(datagram.sequence, content_of(datagram), last);
        if (verdict == SequenceVerdict::duplicate) return {false, 0, 0};
        if (last) ++end_of_stream_;
        if (verdict == SequenceVerdict::new_stream) {
            source.time.forget();
            source.unresolved = false;
        }
    }
    ++source.datagrams;
    source.frames += datagram.frames;
    if (datagram.frames == 0) return {};
    return guard(index, datagram, now_ns);
}

Verdict SourceTracker::guard(std::size_t index, const net::Datagram& datagram, std::int64_t now_ns) {
    Source& source = sources_[index];
    const DatagramTimes times{datagram.first_time, datagram.last_time, datagram.frames};
    if (!first_frame_ns_) first_frame_ns_ = now_ns;

    const std::uint64_t before = source.time.progress();
    const bool was_settled = source.time.settled();
    std::uint64_t reference = 0;
    bool moved = false;
    bool jumped = false;
    if (!source.time.follow(times, reference)) {
        // Keep the reference for a moment: a source that only jumps must not cause a vote for every datagram.
        if (!updated_ns_ || now_ns - *updated_ns_ >= reference_life_ns) update_reference(now_ns);
        std::optional<std::uint64_t> expected = reference_;
        if (!expected && was_settled && source.frame_ns) {
            // Without other sources: the clock of a quiet source has advanced meanwhile.
            const double quiet = static_cast<double>(now_ns - *source.frame_ns) * options_.ticks_per_ns;
            expected = add_or_max(before, static_cast<std::uint64_t>(std::clamp(quiet, 0.0, 0x1p62)));
        }
        const auto outcome = source.time.place(times, expected, reference);
        if (outcome == TimeGuard::Outcome::rejected) {
            ++source.jumped_datagrams;
            return nothing;
        }
        moved = true;
        jumped = outcome == TimeGuard::Outcome::reanchored;
        // A source that returns from silence to the time of the others has not jumped.
        if (was_settled && (jumped || active(source, now_ns))) ++source.clock_jumps;
        source.newest.reset();
    }
    source.frame_ns = now_ns;

    const std::uint64_t progress = source.time.progress();
    const bool fresh = source.time.settled() && !was_settled;
    if (fresh || moved || (progress > leading_above_ && !source.unresolved)) {
        if (fresh) {
            // A source that joins within max_jump has not jumped: the votes judge it.
            reconsider(index, now_ns, std::max(options_.max_jump, options_.max_lag));
        } else if (jumped || (source.time.settled() && progress - before > options_.max_lag && !moved)) {
            reconsider(index, now_ns, options_.max_lag);
        }
        update_reference(now_ns);
    }
    if (source.unresolved && progress > leading_above_) {
        ++source.jumped_datagrams;
        return nothing;
    }
    for (const std::uint64_t t : {times.first, times.last}) {
        if (source.time.within(t, reference) && (!source.newest || t > *source.newest)) source.newest = t;
    }
    // Around both: the reference may be wild by less than max_jump, and the datagram may be one step ahead.
    const std::uint64_t other = source.time.settled() ? source.time.progress() : reference;
    return {true, subtract_or_zero(std::min(reference, other), options_.max_jump),
            add_or_max(std::max(reference, other), options_.max_jump)};
}

TrackerTotals SourceTracker::totals() const {
    TrackerTotals t;
    for (const Source& source : sources_) {
        const SequenceCounts& c = source.sequence.counts();
        t.accepted += source.datagrams;
        t.lost += source.sequence.lost();
        t.duplicate += c.duplicate;
        t.reordered += c.reordered;
        t.restarted += c.restarted;
        t.stray += c.stray;
        t.clock_jumps += source.clock_jumps;
        t.jumped_datagrams += source.jumped_datagrams;
    }
    t.end_of_stream = end_of_stream_;
    t.too_many_sources = too_many_sources_;
    return t;
}

}  // namespace petacq::daemon
