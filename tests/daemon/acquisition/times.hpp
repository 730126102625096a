// Times that the tests of the acquisition share. A tick is a nanosecond.
#pragma once

#include <cstdint>

namespace petacq::test {

inline constexpr std::uint64_t ms = 1'000'000;
inline constexpr std::uint64_t disorder = 10 * ms;  ///< of the datagrams of a source
inline constexpr std::uint64_t offset = 100;        ///< the largest of the calibration

}  // namespace petacq::test
