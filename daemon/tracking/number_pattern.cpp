#include "daemon/tracking/number_pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace petacq::daemon {

namespace {

/// Growth of a number that is read in the right order of bytes, with some loss.
bool small_step(std::uint64_t now, std::uint64_t before) {
    return now - before - 1 < SequenceTracker::reach;
}

/// Of numbers below 2^32 whose sender swapped 32 bits.
std::uint64_t swapped_half(std::uint64_t number) {
    return __builtin_bswap32(static_cast<std::uint32_t>(number));
}

}  // namespace

const char* name_of(NumberFault fault) {
    constexpr std::array names{"none",  "stands_still", "little_endian", "counts_frames",
                               "steps", "counts_down",  "no_order",      "two_boards"};
    return names.at(static_cast<std::size_t>(fault));
}

std::string NumberPattern::text() const {
    switch (fault) {
        case NumberFault::none:
            break;
        case NumberFault::stands_still:
            return fmt::format("its sequence number stands still at {}", number);
        case NumberFault::little_endian:
            return "its sequence number is little-endian";
        case NumberFault::counts_frames:
            return "its sequence number counts frames";
        case NumberFault::steps:
            return fmt::format("its sequence number grows in steps of {}", number);
        case NumberFault::counts_down:
            return "its sequence number counts down";
        case NumberFault::no_order:
            return "its sequence numbers follow no order";
        case NumberFault::two_boards:
            return fmt::format("two boards send with its id, {} and {}", net::to_text(senders[0]),
                               net::to_text(senders[1]));
    }
    return "";
}

std::int64_t NumberWatch::observe(const NumberedDatagram& datagram, const SequenceTracker& numbers) {
    judge(datagram, numbers);
    missing_ = numbers.lost();
    const std::uint64_t before = std::exchange(told_lost_, lost(numbers));
    return static_cast<std::int64_t>(told_lost_ - before);
}

void NumberWatch::judge(const NumberedDatagram& datagram, const SequenceTracker& numbers) {
    if (pattern_ && !meaningless(numbers)) end_pattern(numbers);
    if (datagram.verdict == SequenceVerdict::new_stream) {
        steps_ = collisions_ = 0;
        return;
    }
    const std::uint64_t accepted = numbers.counts().accepted;
    const std::uint64_t between = accepted - accepted_ - 1;
    if (steps_ == 0 || between > block / 2 - between_) {
        begin_block(numbers);
    } else {
        between_ += static_cast<std::uint32_t>(between);
        add_step(datagram);
    }
    previous_ = datagram.number;
    previous_frames_ = datagram.frames;
    accepted_ = accepted;
    ++steps_;
    add_collision(datagram, numbers);
    const bool clear = steps_ == few + 1 && (divisor_ == 0 || swapped_ == few || swapped_half_ == few);
    if (steps_ <= block && !clear) return;
    const NumberPattern found = of_block(datagram);
    if (found) take(found, numbers);
    steps_ = 0;
}

void NumberWatch::begin_block(const SequenceTracker& numbers) {
    steps_ = between_ = 0;
    swapped_ = swapped_half_ = frames_ = frames_before_ = down_ = strays_ = 0;
    divisor_ = 0;
    block_from_ = numbers.counts().accepted - 1;
    block_lost_ = missing_;
}

void NumberWatch::add_step(const NumberedDatagram& datagram) {
    const std::uint64_t step = datagram.number - previous_;
    const auto count = [](std::uint32_t& counter, bool when) { counter += static_cast<std::uint32_t>(when); };
    if (between_ > 0) divisor_ = 1;
    const auto size = std::min(step, 0 - step);
    if (divisor_ != 1) divisor_ = std::gcd(divisor_, size);
    count(swapped_, small_step(__builtin_bswap64(datagram.number), __builtin_bswap64(previous_)));
    count(swapped_half_, ((datagram.number | previous_) >> 32U) == 0 &&
                             small_step(swapped_half(datagram.number), swapped_half(previous_)));
    count(frames_, datagram.frames > 1 && step == datagram.frames);
    count(frames_before_, previous_frames_ > 1 && step == previous_frames_);
    count(down_, step == UINT64_MAX);
    count(strays_, datagram.verdict == SequenceVerdict::stray);
}

/// Two senders take turns: each one's numbers are far from those of the other.
void NumberWatch::add_collision(const NumberedDatagram& datagram, const SequenceTracker& numbers) {
    if (datagram.verdict != SequenceVerdict::stray && datagram.verdict != SequenceVerdict::restart) return;
    const bool from_other = datagram.sender != datagram.sender_before;
    if (from_other && pattern_.fault == NumberFault::two_boards) latest_ = numbers.counts().accepted;
    if (collisions_ == 0) {
        collisions_from_ = numbers.counts().accepted - 1;
        collisions_lost_ = missing_;
        from_others_ = 0;
    }
    ++collisions_;
    from_others_ += static_cast<std::uint32_t>(from_other);
    if (collisions_ < collisions_of_block) return;
    const std::uint64_t among = numbers.counts().accepted - collisions_from_;
    const bool often = among <= datagrams_of_collisions;
    if (from_others_ >= collisions_of_block / 4 && often && from_other) {
        NumberPattern found{NumberFault::two_boards, 0, {datagram.sender_before, datagram.sender}};
        if (pattern_.fault == NumberFault::two_boards) found.senders = pattern_.senders;
        block_from_ = collisions_from_;
        block_lost_ = collisions_lost_;
        take(found, numbers);
        steps_ = collisions_ = 0;
    } else if (!often || collisions_ >= 2 * collisions_of_block) {
        collisions_ = 0;
    }
}

NumberPattern NumberWatch::of_block(const NumberedDatagram& latest) const {
    const auto is = [](NumberFault fault, std::uint64_t number = 0) {
        return NumberPattern{fault, number, {}};
    };
    if (divisor_ == 0) return is(NumberFault::stands_still, latest.number);
    const std::uint32_t enough = (steps_ - 1) * 3 / 4;
    if (swapped_ >= enough || swapped_half_ >= enough) return is(NumberFault::little_endian);
    if (frames_ >= enough || frames_before_ >= enough || (divisor_ > 1 && divisor_ == latest.frames))
        return is(NumberFault::counts_frames);
    if (divisor_ > 1) return is(NumberFault::steps, divisor_);
    if (down_ >= enough) return is(NumberFault::counts_down);
    if (strays_ == block) return is(NumberFault::no_order);
    return {};
}

void NumberWatch::take(const NumberPattern& found, const SequenceTracker& numbers) {
    if (!pattern_) {
        from_ = block_from_;
        known_lost_ = block_lost_ > never_lost_ ? block_lost_ - never_lost_ : 0;
    }
    // What has been recognised stays until the numbers are healthy.
    if (!pattern_ || found.fault != NumberFault::no_order) pattern_ = found;
    latest_pattern_ = pattern_;
    latest_ = numbers.counts().accepted;
}

void NumberWatch::end_pattern(const SequenceTracker& numbers) {
    unnumbered_ = unnumbered(numbers);
    never_lost_ = missing_ > known_lost_ ? missing_ - known_lost_ : 0;
    pattern_ = {};
    steps_ = collisions_ = 0;
}

std::uint64_t NumberWatch::lost(const SequenceTracker& numbers) const {
    if (pattern_) return known_lost_;
    const std::uint64_t missing = numbers.lost();
    return missing > never_lost_ ? missing - never_lost_ : 0;
}

std::uint64_t NumberWatch::unnumbered(const SequenceTracker& numbers) const {
    if (!pattern_) return unnumbered_;
    return unnumbered_ + std::min(numbers.counts().accepted, latest_ + ends_after()) - from_;
}

}  // namespace petacq::daemon
