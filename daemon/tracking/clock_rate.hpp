// How fast the clock of one source runs, by the clock of the host: far from that of the scanner, its times
// are in another unit, or stand still.
//
// Compared are seconds of host time in which the clock neither jumped nor stepped back. Two in a row must say
// the same: data that waited in a board arrive faster than they were taken, but not at a steady rate.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace petacq::daemon {

class ClockRate {
  public:
    struct Wrong {
        double ticks_per_s = 0;
        double expected_per_s = 0;
        /// "its times stand still", "its clock makes 1e+09 ticks a second, 6.4e+10 are expected"
        [[nodiscard]] std::string text() const;
    };

    /// A datagram arrived at `now_ns`. `steps`: how often the clock has jumped or stepped back.
    void observe(std::uint64_t progress, std::uint64_t steps, std::int64_t now_ns, double ticks_per_ns) {
        if (steps == steps_ && now_ns - since_ns_ < second_ns) return;
        compare(progress, steps, now_ns, ticks_per_ns);
    }

    /// While it is wrong.
    [[nodiscard]] const std::optional<Wrong>& wrong() const { return wrong_; }
    /// How it was wrong last.
    [[nodiscard]] const std::optional<Wrong>& latest() const { return latest_; }
    [[nodiscard]] std::uint64_t wrong_seconds() const { return wrong_seconds_; }

  private:
    static constexpr std::int64_t second_ns = 1'000'000'000;

    void compare(std::uint64_t progress, std::uint64_t steps, std::int64_t now_ns, double ticks_per_ns);

    std::uint64_t progress_ = 0;
    std::uint64_t steps_ = UINT64_MAX;  ///< no second has begun
    std::int64_t since_ns_ = 0;
    std::optional<double> rate_;  ///< ticks per ns, in the second before
    std::optional<Wrong> wrong_;
    std::optional<Wrong> latest_;
    std::uint64_t wrong_seconds_ = 0;
};

}  // namespace petacq::daemon
