// A counter with one writing thread and any number of readers.
#pragma once

#include <atomic>
#include <cstdint>

namespace petacq::net {

/// Counts events of one stage. Exactly one thread adds; any thread reads. A read is never torn. Counters are
/// seen in the order in which they were added to: whoever sees a count also sees every count made before it.
class Counter {
  public:
    /// Only the owning thread. A plain load and store: cheaper than a locked add, and enough for one writer.
    void add(std::uint64_t n = 1) {
        value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_release);
    }
    /// Any thread.
    [[nodiscard]] std::uint64_t value() const { return value_.load(std::memory_order_acquire); }

  private:
    std::atomic<std::uint64_t> value_{0};
};

}  // namespace petacq::net
