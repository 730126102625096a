// Which period of a counter that rolls over a datagram belongs to: what is remembered of each source.
//
// The source's latest time and the host time since then say what its counter should show now; the time of a
// frame is the one that fits the counter and lies nearest to that. So a source may pause for many periods,
// and datagrams may overtake each other across a roll-over: only the error of the expectation must stay below
// half a period. A source that is heard for the first time, or whose counter jumps, takes the expectation
// from the other sources: all count from one reset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "net/base/mutex.hpp"
#include "net/endpoint.hpp"

namespace petacq::net {

/// A time in counts, and when a datagram with it arrived.
struct CounterReading {
    std::uint64_t count = 0;
    std::int64_t arrival_ns = 0;

    /// The time at `now_ns`, if the counter runs as it should; not below 0.
    [[nodiscard]] std::uint64_t at(std::int64_t now_ns, double counts_per_ns) const;
};

/// The time that all receivers share: the latest reading of a source that did not fit an earlier one. Safe
/// from any thread; used rarely.
class CommonCounter {
  public:
    [[nodiscard]] std::optional<CounterReading> reading() const;
    void set(CounterReading reading);
    /// The reading, which becomes `first` if there is none.
    CounterReading reading_or(CounterReading first);

  private:
    mutable Mutex mutex_;
    std::optional<CounterReading> reading_ PETACQ_GUARDED_BY(mutex_);
};

/// The times that fit a counter: from `least` on, one period.
struct Window {
    std::uint64_t base = 0;       ///< start of the period in which `least` lies
    std::uint64_t threshold = 0;  ///< counts below this belong to the next period

    Window() = default;
    /// One period around `middle`; from 0 on if that is nearer than half a period.
    Window(std::uint64_t middle, std::uint64_t period) {
        const std::uint64_t least = middle < period / 2 ? 0 : middle - period / 2;
        threshold = least % period;
        base = least - threshold;
    }
    [[nodiscard]] std::uint64_t time(std::uint64_t count, std::uint64_t period) const {
        return base + count + (count < threshold ? period : 0);
    }
};

/// The counters of all sources of one receiver. One thread; only the constructor allocates.
class SourceCounters {
  public:
    /// `sequenced`: sources are told apart by id, otherwise by address and port. `period`: of the time
    /// counter; `common` outlives the object.
    SourceCounters(bool sequenced, std::uint64_t period, double counts_per_ns, CommonCounter& common);

    /// The window of the times of a datagram whose first good frame has `count`.
    Window window(std::uint16_t id, Endpoint sender, std::uint64_t count, std::int64_t arrival_ns);
    /// The last good frame of that datagram has this time.
    void seen(std::uint16_t id, Endpoint sender, std::uint64_t time, std::int64_t arrival_ns);

    /// How many numbers within `mask` are missing between the latest of the source and `number`. None are
    /// if the numbers went back or ahead by more than max_missing: they started again.
    std::uint64_t missing(std::uint16_t id, Endpoint sender, std::uint64_t number, std::uint64_t mask);
    static constexpr std::uint64_t max_missing = (1U << 16) - 1;

    /// The sequence number whose low `bits` bits these are, nearest to the latest of the source.
    std::uint64_t sequence(std::uint16_t id, std::uint64_t low, unsigned bits);

  private:
    struct SenderCounters {
        Endpoint sender;
        bool heard = false;
        bool has_sequence = false;
        bool has_number = false;
        CounterReading latest;
        CounterReading shared;  // the latest that was common
        std::uint64_t sequence = 0;
        std::uint64_t number = 0;
    };

    SenderCounters& source(std::uint16_t id, Endpoint sender);
    [[nodiscard]] bool differs(CounterReading a, CounterReading b, std::uint64_t by) const;

    const bool sequenced_;
    const std::uint64_t period_;
    const double counts_per_ns_;
    CommonCounter& common_;
    // By id; without ids, by a hash: a sender that shares its entry with another is heard for the first time
    // again.
    std::vector<SenderCounters> sources_;
};

}  // namespace petacq::net
