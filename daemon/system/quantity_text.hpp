// Durations and large numbers as people read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace petacq::daemon {

/// "12.5 s", "3 min 05 s", "2 h 07 min", "1 d 10 h". `seconds` is finite.
std::string duration_text(double seconds);
/// Four digits, with a prefix for the unit: "1.235 TB", "312 k/s", "1.235 M", "97" without a unit.
std::string scaled_text(double number, std::string_view unit);

/// "12,345,678", of a whole number with any sign.
std::string grouped(std::string digits);
inline std::string grouped(std::uint64_t number) {
    return grouped(std::to_string(number));
}

/// "12 datagrams", "1 datagram"
std::string counted_text(std::uint64_t number, std::string_view one);

}  // namespace petacq::daemon
