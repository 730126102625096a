#include "daemon/tracking/sequence_tracker.hpp"

#include <algorithm>
#include <cassert>

namespace petacq::daemon {

namespace {

/// a - b modulo 2^64, as a signed number.
std::int64_t distance(std::uint64_t a, std::uint64_t b) {
    return static_cast<std::int64_t>(a - b);
}

}  // namespace

SequenceVerdict SequenceTracker::observe(std::uint64_t sequence, std::uint16_t content, bool end_of_stream) {
    const Stray datagram{sequence, content == 0 ? std::uint16_t{1} : content, end_of_stream};
    if (unique_ == 0) {
        begin_epoch(datagram);
        ++counts_.accepted;
        return SequenceVerdict::in_order;
    }
    const std::int64_t ahead = distance(sequence, highest_);
    const std::int64_t most = static_cast<std::int64_t>(ended_ ? window : max_gap);
    if (ahead > 0 && ahead <= most) {
        advance(datagram);
        row_length_ = 0;
        ++counts_.accepted;
        return SequenceVerdict::in_order;
    }
    if (ahead <= 0 && ahead > -static_cast<std::int64_t>(window)) {
        const std::uint16_t seen = slot(sequence);
        if (seen == 0) {
            fill(datagram);
            row_length_ = 0;
            ++counts_.accepted;
            ++counts_.reordered;
            return SequenceVerdict::reordered;
        }
        if (seen == datagram.content) {
            ++counts_.duplicate;
            return SequenceVerdict::duplicate;
        }
    }
    return observe_stray(datagram);
}

/// Gives the slot of the number one window before to `sequence`, which has not arrived.
void SequenceTracker::vacate(std::uint64_t sequence) {
    std::uint16_t& s = slot(sequence);
    if (s == 0 && sequence - base_ >= window) --gaps_;
    s = 0;
}

void SequenceTracker::begin_epoch(const Stray& first) {
    lost_before_ += span() - unique_;
    seen_.assign(window, 0);
    base_ = highest_ = first.sequence;
    unique_ = 1;
    gaps_ = 0;
    row_length_ = 0;
    ended_ = first.end_of_stream;
    slot(first.sequence) = first.content;
}

void SequenceTracker::advance(const Stray& datagram) {
    const std::uint64_t step = datagram.sequence - highest_;
    if (step >= window) {
        std::fill(seen_.begin(), seen_.end(), std::uint16_t{0});
        gaps_ = window - 1;
    } else {
        for (std::uint64_t n = highest_ + 1; n != datagram.sequence; ++n) {
            vacate(n);
            ++gaps_;
        }
        vacate(datagram.sequence);
    }
    slot(datagram.sequence) = datagram.content;
    highest_ = datagram.sequence;
    ++unique_;
    ended_ = datagram.end_of_stream;
}

void SequenceTracker::fill(const Stray& datagram) {
    if (distance(datagram.sequence, base_) < 0) {
        gaps_ += base_ - datagram.sequence - 1;
        base_ = datagram.sequence;
    } else {
        --gaps_;
    }
    slot(datagram.sequence) = datagram.content;
    ++unique_;
    assert(unique_ <= span());
}

SequenceVerdict SequenceTracker::observe_stray(const Stray& datagram) {
    if (ended_) {
        begin_epoch(datagram);
        ++counts_.accepted;
        ++counts_.restarted;
        return SequenceVerdict::new_stream;
    }
    bool continues = row_length_ > 0;
    for (std::uint32_t i = 0; i < row_length_; ++i) {
        if (row_[i].sequence != datagram.sequence) continue;
        if (row_[i].content == datagram.content) {
            ++counts_.duplicate;
            return SequenceVerdict::duplicate;
        }
        continues = false;
    }
    ++counts_.accepted;
    ++counts_.stray;
    if (continues) {
        const std::int64_t step = distance(datagram.sequence, row_[row_length_ - 1].sequence);
        continues = step <= static_cast<std::int64_t>(near) && step >= -static_cast<std::int64_t>(near);
    }
    if (!continues) row_length_ = 0;
    row_[row_length_++] = datagram;
    if (row_length_ < confirmations) return SequenceVerdict::stray;

    begin_epoch(row_[0]);
    for (std::uint32_t i = 1; i < confirmations; ++i) {
        if (distance(row_[i].sequence, highest_) > 0) {
            advance(row_[i]);
        } else {
            fill(row_[i]);
        }
    }
    ++counts_.restarted;
    return SequenceVerdict::restart;
}

}  // namespace petacq::daemon
