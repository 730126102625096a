// The sequence numbers of one source between two restarts: which have arrived, and how many are missing.
//
// The epoch spans [base, highest], the numbers that are known to exist. A number in it is missing until it
// arrives. Numbers are compared modulo 2^64. The epoch remembers single numbers for `window` on either side
// of the highest; a number further behind counts for what it was when it left the window.
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace petacq::daemon {

/// a - b modulo 2^64, as a signed number.
inline std::int64_t sequence_distance(std::uint64_t a, std::uint64_t b) {
    return static_cast<std::int64_t>(a - b);
}

class SequenceEpoch {
  public:
    static constexpr std::uint64_t window = 16384;  ///< a power of two

    [[nodiscard]] bool empty() const { return arrived_count_ == 0; }
    [[nodiscard]] std::uint64_t base() const { return base_; }
    [[nodiscard]] std::uint64_t highest() const { return highest_; }
    /// Numbers of the epoch that have not arrived.
    [[nodiscard]] std::uint64_t missing() const { return empty() ? 0 : span() - arrived_count_; }
    /// Those that are still remembered, and would be recognised. Counts, unless there are none.
    [[nodiscard]] std::uint64_t missing_in_window() const;

    /// Whether this number has arrived, or was noted. False for numbers that are not remembered.
    [[nodiscard]] bool arrived(std::uint64_t number) const {
        if (empty() || number - (highest_ - window + 1) >= ring) return false;
        return sequence_distance(number, base_) >= 0 && bit(number);
    }
    /// Whether one of `count` consecutive numbers has arrived, or was noted.
    [[nodiscard]] bool any_arrived(std::uint64_t first, std::uint32_t count) const {
        if (empty()) return false;
        if (first - highest_ - 1 < window && count <= window - (first - highest_ - 1))
            return any(first, count);
        for (std::uint32_t i = 0; i < count; ++i)
            if (arrived(first + i)) return true;
        return false;
    }
    /// Whether the epoch remembers that this number is missing.
    [[nodiscard]] bool is_missing(std::uint64_t number) const;
    /// Whether the absence of this number was known at the latest mark().
    [[nodiscard]] bool marked(std::uint64_t number) const { return number - marked_base_ < marked_count_; }

    /// Starts anew with one number. The first call allocates.
    void start(std::uint64_t number);
    /// A number above the highest has arrived: the others up to it are missing, unless they were noted.
    void advance(std::uint64_t number);
    /// The number after the highest has arrived.
    void advance() {
        ++highest_;
        ++arrived_count_;
        clear(highest_ + window);
        set(highest_);
    }
    /// The next `count` numbers after the highest have arrived. REQUIRES: none had arrived or was noted, and
    /// they are not more than a window.
    void advance_by(std::uint32_t count) {
        clear(highest_ + window + 1, count);
        each_word(highest_ + 1, count, [&](std::uint64_t word, std::uint64_t mask) { bits_[word] |= mask; });
        highest_ += count;
        arrived_count_ += count;
    }
    /// A missing number has arrived, or one less than a window below the highest and below the base.
    void fill(std::uint64_t number);
    /// A number less than a window above the highest has arrived, but the epoch does not reach it yet.
    void note(std::uint64_t number);
    /// From now on marked() is true for all numbers of the epoch so far.
    void mark();

  private:
    static constexpr std::uint64_t ring = 2 * window;

    [[nodiscard]] std::uint64_t span() const { return highest_ - base_ + 1; }
    [[nodiscard]] bool bit(std::uint64_t number) const {
        return (bits_[number % ring / 64] >> (number % 64) & 1) != 0;
    }
    void set(std::uint64_t number) { bits_[number % ring / 64] |= std::uint64_t{1} << (number % 64); }
    void clear(std::uint64_t number) { bits_[number % ring / 64] &= ~(std::uint64_t{1} << (number % 64)); }
    /// Calls `visit(word, mask)` for the bits of `count` consecutive numbers, at most those of the ring.
    template <class Visit>
    static void each_word(std::uint64_t from, std::uint64_t count, Visit visit) {
        while (count > 0) {
            const unsigned bit = from & 63U;
            const unsigned here = count < 64 - bit ? static_cast<unsigned>(count) : 64 - bit;
            visit(from % ring / 64, (~std::uint64_t{0} >> ((64 - here) & 63U)) << bit);
            from += here;
            count -= here;
        }
    }
    [[nodiscard]] bool any(std::uint64_t from, std::uint64_t count) const {
        std::uint64_t found = 0;
        each_word(from, count, [&](std::uint64_t word, std::uint64_t mask) { found |= bits_[word] & mask; });
        return found != 0;
    }
    void clear(std::uint64_t from, std::uint64_t count) {
        each_word(from, count, [&](std::uint64_t word, std::uint64_t mask) { bits_[word] &= ~mask; });
    }
    [[nodiscard]] std::uint64_t count(std::uint64_t from, std::uint64_t count) const;

    std::uint64_t base_ = 0;
    std::uint64_t highest_ = 0;
    std::uint64_t arrived_count_ = 0;  ///< in the span
    std::uint64_t marked_base_ = 0;
    std::uint64_t marked_count_ = 0;
    std::vector<std::uint64_t> bits_;  ///< has arrived, for (highest - window, highest + window]
};

}  // namespace petacq::daemon
