// Overload: which datagrams are kept when more arrive for a while than the next stages can take.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "net/batch.hpp"

namespace petacq::net {

/// All receivers drop what arrived in the same stretches of host time. Boards on different sockets are
/// missing together then, and what is kept is whole: if each socket overflowed by itself, the pairs between
/// them would be lost as well. Any thread.
///
/// Dropping begins when the pool is almost empty and some socket has used up half of its buffer, and ends
/// when a quarter of the pool is free again: the next stages never run out of work. It is decided for one
/// millisecond of arrival after the other, each by the first receiver that gets there; the others follow,
/// however far behind they are.
class OverloadGate {
  public:
    /// The pool outlives the gate.
    explicit OverloadGate(const BatchPool& pool) : pool_(pool) {}

    /// So little is free that a receiver should look at its socket, and press() if that fills up.
    [[nodiscard]] bool pool_is_low() const { return pool_.free_count() * low < pool_.count(); }
    /// The buffer of a socket is half full.
    void press() {
        if (!pressed_.load(std::memory_order_relaxed)) pressed_.store(true, std::memory_order_relaxed);
    }
    /// Whether datagrams that arrived at this time are kept. Times that differ by more than four seconds from
    /// those asked for last are.
    bool keeps(std::int64_t arrival_ns) {
        const std::uint64_t cell = static_cast<std::uint64_t>(arrival_ns) / cell_ns + 1;
        std::atomic<std::uint64_t>& entry = decisions_[cell % cells];
        std::uint64_t decision = entry.load(std::memory_order_relaxed);
        if (decision >> 1 < cell) {
            const std::uint64_t fresh = cell << 1 | (decide() ? 1U : 0U);
            if (entry.compare_exchange_strong(decision, fresh, std::memory_order_relaxed)) decision = fresh;
        }
        return decision >> 1 != cell || (decision & 1) != 0;
    }
    /// Whether what arrives now would be dropped.
    [[nodiscard]] bool dropping() const { return dropping_.load(std::memory_order_relaxed); }

  private:
    static constexpr std::uint64_t cell_ns = 1'000'000;
    static constexpr std::size_t cells = 4096;
    static constexpr std::size_t low = 8;   ///< a part of the pool: dropping begins with less
    static constexpr std::size_t high = 4;  ///< and ends with more

    /// Whether the next cell is kept.
    bool decide() {
        if (dropping()) {
            if (pool_.free_count() * high < pool_.count()) return false;
            pressed_.store(false, std::memory_order_relaxed);
            dropping_.store(false, std::memory_order_relaxed);
        } else if (pressed_.exchange(false, std::memory_order_relaxed) && pool_is_low()) {
            dropping_.store(true, std::memory_order_relaxed);
            return false;
        }
        return true;
    }

    const BatchPool& pool_;
    std::atomic<bool> dropping_{false};
    std::atomic<bool> pressed_{false};
    /// [cell % cells] cell << 1 | kept; cells count from 1; 0: nobody has asked
    std::array<std::atomic<std::uint64_t>, cells> decisions_{};
};

}  // namespace petacq::net
