#include "tools/petlm/records/recovery/surviving_times.hpp"

#include <algorithm>
#include <utility>

namespace petacq::petlm {

void SurvivingTimes::add(const daemon::BlockHeader& block) {
    const bool follows = block.first_record == next_record_;
    if (!follows || ranges_.empty()) {
        const bool from_start = follows && first_part_;
        ranges_.push_back({from_start ? 0 : block.first_time, 0});
    }
    // A set of times does not hold 2^64-1.
    ranges_.back().end = std::max(block.last_time, block.last_time + 1);
    next_record_ = block.first_record + block.records;
}

void SurvivingTimes::finish(const std::optional<daemon::Trailer>& trailer) {
    if (!trailer || trailer->records != next_record_) return;
    if (ranges_.empty()) ranges_.push_back({0, 0});
    ranges_.back().end = UINT64_MAX;
}

daemon::Coverage covered_by_survivors(const daemon::Coverage& whole, daemon::Intervals times,
                                      std::uint64_t first_time, const daemon::Intervals& seconds,
                                      std::optional<std::uint64_t> run_begin) {
    if (!whole.intervals) {
        std::uint64_t start = whole.anchor ? std::min(whole.anchor->ticks, first_time) : first_time;
        if (!seconds.empty()) start = std::max(start, std::min(seconds.span().start, first_time));
        times = times.intersect(gpu::TickRange{run_begin.value_or(start), UINT64_MAX});
    }
    daemon::Coverage covered = daemon::what_survived(whole, times);
    covered.loss.seconds_complete = seconds.intersect(*covered.intervals) == *covered.intervals;
    return covered;
}

}  // namespace petacq::petlm
