#include "daemon/tracking/sequence_tracker.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace petacq::daemon {

namespace {

/// Whether `a` is above `b` by at most `most`.
bool ahead(std::uint64_t a, std::uint64_t b, std::uint64_t most) {
    return a - b - 1 < most;
}

}  // namespace

SequenceVerdict SequenceTracker::observe_any(std::uint64_t sequence, std::uint32_t content,
                                             bool end_of_stream) {
    if (current_.empty()) {
        slots_.reset(
            static_cast<SequenceMark*>(std::calloc(window, sizeof(SequenceMark))));  // NOLINT(*-no-malloc)
        if (!slots_) throw std::bad_alloc();
        current_.start(sequence);
        slots_[sequence % window].latest = fingerprint(sequence, content);
        ended_ = end_of_stream;
        ++counts_.accepted;
        return SequenceVerdict::in_order;
    }
    const std::uint64_t highest = current_.highest();
    const bool in_order =
        ahead(sequence, highest, near) || (end_of_stream && !ended_ && ahead(sequence, highest, window));
    const bool late = !in_order && current_.is_missing(sequence);
    const bool late_in_previous = !in_order && !late && previous_.is_missing(sequence);
    const bool reordered = late || late_in_previous || (!in_order && precedes(sequence));

    // A number that fits and has not been seen needs no comparison: fingerprints may agree by chance.
    SequenceMark& slot = slots_[sequence % window];
    const std::uint32_t print = fingerprint(sequence, content);
    const bool fits = (in_order || reordered) && !current_.arrived(sequence) && !previous_.arrived(sequence);
    if (!fits && (print == slot.latest || print == slot.older))
        return observe_copy(sequence, print == slot.older);
    slot = {print, slot.latest};

    ++counts_.accepted;
    if (in_order) {
        current_.advance(sequence);
        ended_ = end_of_stream;
        again_ = false;
        abandon_row();
        return SequenceVerdict::in_order;
    }
    if (reordered) {
        SequenceEpoch& epoch = late_in_previous ? previous_ : current_;
        if (epoch.marked(sequence)) ++counts_.recovered;
        epoch.fill(sequence);
        if (!late_in_previous) abandon_row();
        ++counts_.reordered;
        return SequenceVerdict::reordered;
    }
    return observe_stray({sequence, end_of_stream});
}

void SequenceTracker::mark() {
    current_.mark();
    previous_.mark();
}

/// Whether the number lies just below the first number of an epoch that has just started.
bool SequenceTracker::precedes(std::uint64_t sequence) const {
    return sequence_distance(sequence, current_.base()) < 0 && current_.highest() - sequence <= near;
}

/// `older`: the copy is not of the latest datagram in its slot.
SequenceVerdict SequenceTracker::observe_copy(std::uint64_t sequence, bool older) {
    const bool arrived = current_.arrived(sequence);
    bool repeated = previous_.arrived(sequence) && (older || !arrived);
    if (!repeated && arrived && ended_) {
        const std::uint64_t remembered = std::min(current_.highest() - current_.base() + 1, window);
        again_ = again_ || current_.highest() - sequence >= (remembered + 1) / 2;
        repeated = again_;
    }
    ++(repeated ? counts_.repeated : counts_.duplicate);
    return repeated ? SequenceVerdict::repeated : SequenceVerdict::duplicate;
}

SequenceVerdict SequenceTracker::observe_stray(const Stray& datagram) {
    if (ended_) {
        abandon_row();
        start_epoch(datagram.sequence);
        ended_ = datagram.end_of_stream;
        ++counts_.restarted;
        ++counts_.new_streams;
        return SequenceVerdict::new_stream;
    }
    // The number counts as arrived when the epoch gets there.
    if (ahead(datagram.sequence, current_.highest(), window)) current_.note(datagram.sequence);

    const bool agrees = std::all_of(row_.begin(), row_.begin() + row_length_,
                                    [&](const Stray& s) { return s.sequence != datagram.sequence; }) &&
                        row_length_ > 0 &&
                        datagram.sequence - row_[row_length_ - 1].sequence + reach <= 2 * reach;
    if (!agrees) {
        const bool further = row_length_ > 0 &&
                             ahead(datagram.sequence, row_[row_length_ - 1].sequence, max_gap) &&
                             ahead(row_[0].sequence, current_.highest(), max_gap);
        if (further) {
            ahead_ += std::exchange(row_length_, 0);
        } else {
            abandon_row();
        }
    }
    row_[row_length_++] = datagram;
    if (row_length_ < confirmations) return SequenceVerdict::stray;

    const auto by_number = [](const Stray& a, const Stray& b) {
        return sequence_distance(a.sequence, b.sequence) < 0;
    };
    const auto [lowest, top] = std::minmax_element(row_.begin(), row_.end(), by_number);
    const std::uint64_t highest = current_.highest();
    const bool continues =
        ahead(lowest->sequence, highest, max_gap) && ahead(top->sequence, highest, max_gap);
    if (!continues) {
        counts_.stray += row_length_ + ahead_;
        start_epoch(lowest->sequence);
        ++counts_.restarted;
    }
    ahead_ = 0;
    continue_with_row(top->sequence);
    ended_ = top->end_of_stream;
    return continues ? SequenceVerdict::in_order : SequenceVerdict::restart;
}

void SequenceTracker::start_epoch(std::uint64_t base) {
    lost_before_ += previous_.missing();
    std::swap(current_, previous_);
    current_.start(base);
    again_ = false;
    row_length_ = 0;
}

void SequenceTracker::continue_with_row(std::uint64_t top) {
    current_.advance(top);
    for (const Stray& stray : row_) {
        if (current_.is_missing(stray.sequence)) current_.fill(stray.sequence);
    }
    row_length_ = 0;
}

}  // namespace petacq::daemon
