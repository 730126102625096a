#include "tools/petlm/mpi/plan.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "tools/petlm/base/status.hpp"

namespace petacq::petlm {

std::uint64_t watermark_of(const Inputs& inputs, const InputOptions& options) {
    const bool ends_with_first = inputs.runs.size() > 1 && !options.partial;
    std::uint64_t watermark = options.to;
    for (std::size_t i = 0; i < inputs.runs.size(); ++i) {
        const auto blocks = inputs.singles[i].blocks();
        std::uint64_t known = blocks.empty() ? 0 : blocks.back().last_time;
        if (inputs.ended[i]) {
            known =
                ends_with_first ? times_of(inputs.coverages[i], inputs.singles[i]).span().end : UINT64_MAX;
        }
        watermark = std::min(watermark, known);
    }
    return watermark;
}

namespace {

std::uint64_t singles_in(std::span<const SinglesFiles> runs, gpu::TickRange range) {
    std::uint64_t singles = 0;
    for (const SinglesFiles& run : runs)
        for (const SinglesFiles::SinglesBlock& block : run.blocks_in(range))
            singles += block.records;
    return singles;
}

/// Of shards that all ranks search at once, as often as needed, and as large as the limit at most: then all
/// of them end at about the same time.
std::uint64_t even_share(std::uint64_t singles, std::uint64_t limit, std::size_t ranks) {
    const std::uint64_t times = (singles + ranks * limit - 1) / (ranks * limit);
    return times == 0 ? limit : (singles + ranks * times - 1) / (ranks * times);
}

}  // namespace

Plan::Plan(const ResortOptions& options, const Engines& engines, std::size_t ranks)
    : options_(options.input), reach_(reach_of(engines.rules)) {
    limits_.singles = options.shard_singles.value_or(part_singles);
    limits_.ticks = engines.ticks_per_s();
    limits_.shards = ranks;
}

void Plan::go_on_after(gpu::TickRange stretch) {
    begin_ = stretch.start;
    position_ = stretch.end;
}

/// As settle_interval(), from the starts alone. Absent: a run has not started, or has no singles yet.
std::optional<std::uint64_t> Plan::begin_of(const Inputs& inputs) const {
    std::optional<std::uint64_t> begin;
    for (std::size_t i = 0; i < inputs.runs.size(); ++i) {
        const daemon::Coverage& coverage = inputs.coverages[i];
        const bool started = (coverage.anchor || coverage.intervals) && !inputs.singles[i].blocks().empty();
        if (!started && !inputs.ended[i]) return std::nullopt;
        const std::uint64_t start = times_of(coverage, inputs.singles[i]).span().start;
        if (!begin) begin = start;
        begin = options_.partial ? std::min(*begin, start) : std::max(*begin, start);
    }
    return std::max(begin.value_or(0), options_.from);
}

std::vector<gpu::TickRange> Plan::next(Inputs& inputs) {
    if (finished_) return {};
    const bool all_ended = std::find(inputs.ended.begin(), inputs.ended.end(), false) == inputs.ended.end();
    if (all_ended && !inputs.settled) {
        settle_interval(inputs, options_);
        limit_ = inputs.interval.end;
        if (begin_ && (inputs.interval.start < *begin_ || inputs.interval.end < position_))
            throw BadInput("the runs have another interval than the parts; --force starts again");
    }
    if (!begin_) {
        begin_ = all_ended ? inputs.interval.start : begin_of(inputs);
        if (!begin_) return {};
        position_ = *begin_;
    }
    if (!inputs.settled) inputs.interval.start = *begin_;  // whose run the result is (Inputs::first)
    const std::uint64_t known = all_ended ? inputs.interval.end : watermark_of(inputs, options_);
    const std::uint64_t end = known == UINT64_MAX ? known : known - std::min(known, reach_);
    std::vector<gpu::TickRange> shards;
    if (end > position_) {
        ShardLimits limits = limits_;
        if (all_ended) {
            limits.ticks = UINT64_MAX;  // the rest belongs to the last shard
            limits.singles =
                even_share(singles_in(inputs.singles, {position_, end}), limits_.singles, limits_.shards);
        }
        shards = next_shards(inputs.singles, {position_, end}, limits);
    }
    if (!shards.empty()) position_ = shards.back().end;
    if (all_ended && shards.size() < limits_.shards) {
        finished_ = true;
        if (position_ < inputs.interval.end) shards.push_back({position_, inputs.interval.end});
        position_ = inputs.interval.end;
    }
    return shards;
}

}  // namespace petacq::petlm
