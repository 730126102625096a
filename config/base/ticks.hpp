// Times in seconds and parts of them, as people write them, in ticks of the detector's clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace petacq::config {

enum class TimeUnit : std::uint8_t { ps, ns, us, ms, s };

/// How a time that lies between two ticks is rounded.
enum class Rounding : std::uint8_t {
    down,     ///< a window, inclusive: two times differ by at most the window if and only if they do in ticks
    up,       ///< either end of an interval: a tick lies at or after the time
    nearest,  ///< a delay, which is any whole number of ticks; the larger of two that are equally near
};

/// Computes with the decimal digits, and thus exactly, as long as time and tick have at most 18 digits each.
/// Throws Error with "expected a number of ns ..., found ..." unless `decimal` is a number of at least 0,
/// such as "4.5" or "1e-3", and the result is less than 2^63.
std::uint64_t ticks_of(const std::string& decimal, TimeUnit unit, double tick_ps, Rounding rounding);

/// Whole numbers of a unit in ticks, for many of them. As exact, and thus the same on every processor,
/// whatever its floating-point numbers are.
class WholeTimes {
  public:
    WholeTimes(TimeUnit unit, double tick_ps);
    /// Nothing: not less than 2^63.
    [[nodiscard]] std::optional<std::uint64_t> ticks(std::uint64_t number, Rounding rounding) const;

  private:
    __extension__ using Wide = unsigned __int128;
    // A unit has over / under ticks.
    Wide over_;
    Wide under_;
};

}  // namespace petacq::config
