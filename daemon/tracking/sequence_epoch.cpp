#include "daemon/tracking/sequence_epoch.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

namespace petacq::daemon {

std::uint64_t SequenceEpoch::missing_in_window() const {
    if (missing() == 0) return 0;
    const std::uint64_t remembered = std::min(span(), window);
    return remembered - count(highest_ - remembered + 1, remembered);
}

bool SequenceEpoch::is_missing(std::uint64_t number) const {
    if (empty() || highest_ - number >= window) return false;
    return sequence_distance(number, base_) >= 0 && !bit(number);
}

void SequenceEpoch::start(std::uint64_t number) {
    bits_.assign(ring / 64, 0);
    base_ = highest_ = number;
    arrived_count_ = 1;
    marked_count_ = 0;
    set(number);
}

void SequenceEpoch::advance(std::uint64_t number) {
    const std::uint64_t step = number - highest_;
    assert(step > 0 && sequence_distance(number, highest_) > 0);
    if (step > 1) arrived_count_ += count(highest_ + 1, std::min(step - 1, window));
    ++arrived_count_;
    clear(highest_ + window + 1, std::min(step, ring));
    highest_ = number;
    set(number);
}

void SequenceEpoch::fill(std::uint64_t number) {
    assert(highest_ - number < window && !arrived(number));
    if (sequence_distance(number, base_) < 0) base_ = number;
    set(number);
    ++arrived_count_;
    assert(arrived_count_ <= span());
}

void SequenceEpoch::note(std::uint64_t number) {
    assert(number - highest_ <= window && number != highest_);
    set(number);
}

void SequenceEpoch::mark() {
    marked_base_ = base_;
    marked_count_ = empty() ? 0 : span();
}

std::uint64_t SequenceEpoch::count(std::uint64_t from, std::uint64_t count) const {
    std::uint64_t set = 0;
    each_word(from, count, [&](std::uint64_t word, std::uint64_t mask) {
        set += static_cast<std::uint64_t>(std::popcount(bits_[word] & mask));
    });
    return set;
}

}  // namespace petacq::daemon
