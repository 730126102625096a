#include "net/foreign/roll_over.hpp"

#include <algorithm>
#include <cmath>

namespace petacq::net {

namespace {

constexpr std::size_t ids = std::size_t{1} << 16;
constexpr std::size_t senders = 4096;
// A counter that is this part of a period away from the expectation has jumped.
constexpr std::uint64_t jump_part = 8;
// Others are told of a difference of this part of a period.
constexpr std::uint64_t drift_part = 64;
// By how many blocks a block may be overtaken.
constexpr std::uint64_t overtaken = 1024;

std::size_t hash_of(Endpoint sender) {
    // The constant is 2^64 over the golden ratio.
    return (std::uint64_t{sender.address} << 16 | sender.port) * 0x9E3779B97F4A7C15ULL >> 52;
}
static_assert(senders == std::size_t{1} << (64 - 52));

std::uint64_t distance(std::uint64_t a, std::uint64_t b) {
    return a > b ? a - b : b - a;
}

}  // namespace

std::uint64_t CounterReading::at(std::int64_t now_ns, double counts_per_ns) const {
    const double counts = static_cast<double>(now_ns - arrival_ns) * counts_per_ns;
    // Beyond any counter that a scanner will see, and within the type.
    const auto elapsed = static_cast<std::int64_t>(std::clamp(counts, -0x1p62, 0x1p62));
    if (elapsed < 0 && count < static_cast<std::uint64_t>(-elapsed)) return 0;
    return count + static_cast<std::uint64_t>(elapsed);
}

std::optional<CounterReading> CommonCounter::reading() const {
    const MutexLock lock(mutex_);
    return reading_;
}

void CommonCounter::set(CounterReading reading) {
    const MutexLock lock(mutex_);
    reading_ = reading;
}

CounterReading CommonCounter::reading_or(CounterReading first) {
    const MutexLock lock(mutex_);
    if (!reading_) reading_ = first;
    return *reading_;
}

SourceCounters::SourceCounters(bool sequenced, std::uint64_t period, double counts_per_ns,
                               CommonCounter& common)
    : sequenced_(sequenced),
      period_(period),
      counts_per_ns_(counts_per_ns),
      common_(common),
      sources_(sequenced ? ids : senders) {}

SourceCounters::SenderCounters& SourceCounters::source(std::uint16_t id, Endpoint sender) {
    if (sequenced_) return sources_[id];
    SenderCounters& s = sources_[hash_of(sender)];
    if (s.sender != sender) {
        s = {};
        s.sender = sender;
    }
    return s;
}

bool SourceCounters::differs(CounterReading a, CounterReading b, std::uint64_t by) const {
    return distance(a.at(b.arrival_ns, counts_per_ns_), b.count) > by;
}

Window SourceCounters::window(std::uint16_t id, Endpoint sender, std::uint64_t count,
                              std::int64_t arrival_ns) {
    const SenderCounters& s = source(id, sender);
    const auto window_of = [&](CounterReading reading) {
        return Window(reading.at(arrival_ns, counts_per_ns_), period_);
    };
    if (!s.heard) {
        // The first of all starts in the second period, so that frames from before a roll-over have a time.
        return window_of(common_.reading_or({period_ + count, arrival_ns}));
    }
    const Window own = window_of(s.latest);
    if (!differs(s.latest, {own.time(count, period_), arrival_ns}, period_ / jump_part)) return own;
    // A reset, most likely of all sources: the one that was heard first after it decides.
    const std::optional<CounterReading> common = common_.reading();
    return common ? window_of(*common) : own;
}

void SourceCounters::seen(std::uint16_t id, Endpoint sender, std::uint64_t time, std::int64_t arrival_ns) {
    SenderCounters& s = source(id, sender);
    const CounterReading now{time, arrival_ns};
    s.latest = now;
    if (!s.heard || differs(s.shared, now, period_ / drift_part)) {
        common_.set(now);
        s.shared = now;
    }
    s.heard = true;
}

std::uint64_t SourceCounters::missing(std::uint16_t id, Endpoint sender, std::uint64_t number,
                                      std::uint64_t mask) {
    SenderCounters& s = source(id, sender);
    const bool first = !s.has_number;
    const std::uint64_t ahead = (number - s.number) & mask;
    const std::uint64_t behind = (s.number - number) & mask;
    s.has_number = true;
    if (!first && behind <= std::min(overtaken, mask / 2)) return 0;  // late
    s.number = number;
    return first || ahead - 1 > std::min(max_missing, mask / 2) ? 0 : ahead - 1;
}

std::uint64_t SourceCounters::sequence(std::uint16_t id, std::uint64_t low, unsigned bits) {
    if (bits >= 64) return low;
    SenderCounters& s = sources_[id];
    const std::uint64_t period = std::uint64_t{1} << bits;
    // Numbers start in the second period, so that those from before a roll-over have a number.
    s.sequence = s.has_sequence ? Window(s.sequence, period).time(low, period) : period + low;
    s.has_sequence = true;
    return s.sequence;
}

}  // namespace petacq::net
