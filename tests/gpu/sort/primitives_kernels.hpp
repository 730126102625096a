// Kernels that use the block-level primitives, each on one block.
#pragma once

#include <cstdint>
#include <vector>

namespace petacq::test {

using Words = std::vector<std::uint32_t>;

/// One value for each of 32, 256 or 1024 threads. Each primitive runs twice with the same storage, on
/// different values.
struct Scanned {
    Words exclusive, inclusive;
    std::uint32_t total;
    Words doubled_exclusive;  ///< of twice the values
    std::uint32_t largest;
    std::uint32_t sum;
};
Scanned scan_on_device(const Words& values);
/// 64-bit sums; exclusive, and the total behind them.
std::vector<std::uint64_t> scan_long_on_device(const std::vector<std::uint64_t>& values);

/// Of 32, 768, 1024 or 2048 values, several to a thread: those with value + 1 divisible by 3, in order; for
/// 768 and 1024, then those divisible by 3.
Words compact_on_device(const Words& values);

/// Counts of the labels, four from each of 256 threads, all counted twice.
Words histogram_on_device(const Words& labels, std::uint32_t bins);

/// For each of 32 lanes: the lanes with the same low 5 bits.
Words peers_on_device(const Words& labels);

/// For each limit: the first ordered value not below it, found by one thread and by a warp.
struct Found {
    Words by_thread, by_warp;
};
Found search_on_device(const Words& ordered, const Words& limits);

}  // namespace petacq::test
