// A counter with one writing thread and any number of readers.
#pragma once

#include <atomic>
#include <cstdint>

namespace petacq::net {

/// Counts events of one stage. Exactly one thread adds; any thread reads, and a read is never torn. A thread
/// that sees a count also sees every count that the adding thread made before it.
class Counter {
  public:
    /// For the owning thread only: with one writer, a load and a store are cheaper than a locked add.
    void add(std::uint64_t n = 1) {
        value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_release);
    }
    /// Any thread.
    [[nodiscard]] std::uint64_t value() const { return value_.load(std::memory_order_acquire); }

  private:
    std::atomic<std::uint64_t> value_{0};
};

}  // namespace petacq::net
