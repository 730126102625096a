#include "daemon/run/run_coverage.hpp"

#include <algorithm>

#include "daemon/tracking/saturate.hpp"

namespace petacq::daemon {

void RunCoverage::begin(std::uint64_t ticks, std::optional<std::chrono::system_clock::time_point> utc,
                        std::uint64_t taken_from) {
    const net::MutexLock lock(mutex_);
    begin_ = ticks;
    taken_.start = taken_from;
    if (utc) coverage_.anchor = TimeAnchor{ticks, *utc};
}

void RunCoverage::restart() {
    const net::MutexLock lock(mutex_);
    begin_.reset();
    coverage_.anchor.reset();
}

RunCoverage::TakenTimes RunCoverage::taken() const {
    const net::MutexLock lock(mutex_);
    return taken_;
}

void RunCoverage::end(gpu::TickRange covered, gpu::TickRange taken, Loss loss) {
    const net::MutexLock lock(mutex_);
    coverage_.intervals = Intervals(covered);
    taken_ = {taken.start, taken.end};
    coverage_.loss = loss;
}

Coverage RunCoverage::of(RecordKind kind) const {
    const net::MutexLock lock(mutex_);
    Coverage coverage = coverage_;
    if (kind == RecordKind::singles || kind == RecordKind::tags) coverage.rules.coincidence.reset();
    // Pairs are the same with and without gammas.
    if (kind != RecordKind::singles && kind != RecordKind::triples) coverage.rules.gammas.reset();
    if (kind == RecordKind::tags) coverage.rules.energy.reset();
    return coverage;
}

Coverage RunCoverage::of_part(RecordKind kind, const PartTimes& times) const {
    Coverage coverage = of(kind);
    if (!coverage.intervals) {
        const net::MutexLock lock(mutex_);
        const std::uint64_t end = times.last_time ? add_or_max(*times.last_time, 1) : 0;
        coverage.intervals =
            begin_ ? Intervals(gpu::TickRange{*begin_, times.to.value_or(end)}) : Intervals();
        coverage.loss.live.reset();
    }
    if (!times.from && !times.to) return coverage;
    const gpu::TickRange share{times.from.value_or(0), times.to.value_or(UINT64_MAX)};
    return part_of(std::move(coverage), share);
}

}  // namespace petacq::daemon
