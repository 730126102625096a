#include "tools/petlm/resort/search/shard_search.hpp"

#include <algorithm>
#include <utility>

#include "daemon/tracking/saturate.hpp"
#include "tools/petlm/resort/singles/block_order.hpp"

namespace petacq::petlm {
namespace {

using daemon::add_or_max;

std::span<const gpu::Single> within(std::span<const gpu::Single> singles, gpu::TickRange range) {
    const auto before = [](std::uint64_t time) {
        return [time](const gpu::Single& s) { return s.time < time; };
    };
    const auto begin = std::partition_point(singles.begin(), singles.end(), before(range.start));
    if (range.end == UINT64_MAX) return {begin, singles.end()};
    return {begin, std::partition_point(begin, singles.end(), before(range.end))};
}

}  // namespace

ShardSearch::ShardSearch(daemon::Backend backend, std::uint32_t slice_singles,
                         const gpu::CoincidenceRules& rules, std::uint32_t crystals)
    : backend_(std::move(backend)),
      slice_singles_(slice_singles),
      reach_(rules.window + rules.delay.value_or(0)),
      gammas_(rules.gammas, crystals),
      spans_(backend_.pipeline->depth() + 1) {
    auto* const singles = reinterpret_cast<gpu::Single*>(
        backend_.memory->allocate(spans_.size() * slice_singles_ * sizeof(gpu::Single)));
    for (std::size_t i = 0; i < spans_.size(); ++i)
        buffers_.push_back(singles + i * slice_singles_);
}

ShardSearch::~ShardSearch() {
    backend_.pipeline.reset();  // first, because it may still read the spans
}

ShardResult ShardSearch::search(std::span<const SinglesFiles> runs, gpu::TickRange shard, gpu::TickRange all,
                                std::span<const gpu::TickRange> seconds) {
    result_ = {};
    ahead_.clear();
    const bool last = shard.end >= all.end;
    shard.end = std::min(shard.end, all.end);
    gammas_.start(shard, all);
    auto second = static_cast<std::size_t>(
        std::partition_point(seconds.begin(), seconds.end(),
                             [&](const gpu::TickRange& s) { return s.end <= shard.start; }) -
        seconds.begin());
    // Ends the seconds that the watermark decides, but for the one that the shard ends in.
    const auto end_seconds = [&](std::uint64_t watermark) {
        while (second + 1 < seconds.size() && seconds[second].end < shard.end &&
               add_or_max(seconds[second].end, reach_) <= watermark) {
            submit_before(seconds[second].end, {true, seconds[second].start});
            ++second;
        }
    };
    const std::uint64_t decided_by = add_or_max(shard.end, reach_);
    const std::uint64_t seen_to = std::min(decided_by, all.end);
    const auto order = blocks_in_order(runs, {gammas_.range().start, std::max(seen_to, gammas_.range().end)});
    for (std::size_t i = 0; i < order.size(); ++i) {
        const SinglesFiles& run = *order[i].run;
        const SinglesFiles::SinglesBlock& block = *order[i].block;
        // Singles after the shard wait, and with them the watermark.
        const std::uint64_t watermark =
            std::min(i + 1 < order.size() ? order[i + 1].block->first_time : UINT64_MAX, shard.end);
        if (!gammas_.any() && run.keeps_all() && shard.start <= block.first_time &&
            block.last_time < shard.end && block.records <= slice_singles_) {
            read_whole(run, block);
            end_seconds(watermark);
            continue;
        }
        const auto singles = gammas_.take(run.kept(run.read(block, block_), kept_));
        add(within(singles, shard), block.first_time, true);
        if (!last) {
            const auto after = within(singles, {shard.end, seen_to});
            ahead_.insert(ahead_.end(), after.begin(), after.end());
        }
        end_seconds(watermark);
    }
    if (!last) {
        if (filled_ != 0) submit(shard.end, {true, {}});
        add(ahead_, shard.end, false);
        if (filled_ != 0) submit(shard.end, {false, {}});
    }
    end_seconds(UINT64_MAX);
    const std::uint64_t open = second < seconds.size() ? seconds[second].start : shard.start;
    if (last) {
        submit(UINT64_MAX, {true, open}, UINT64_MAX);
    } else {
        submit_before(shard.end, {true, open});
    }
    while (!submitted_.empty())
        collect();
    backend_.pipeline->reset();
    gammas_.finish(result_);
    return std::move(result_);
}

/// Reads a block whose singles all belong to the shard to where the pipeline takes them.
void ShardSearch::read_whole(const SinglesFiles& run, const SinglesFiles::SinglesBlock& block) {
    if (block.records > slice_singles_ - filled_) submit(block.first_time, {true, {}});
    run.read(block, block_, std::span(buffers_[filling_] + filled_, block.records));
    filled_ += block.records;
}

/// `watermark`: of slices that the singles fill.
void ShardSearch::add(std::span<const gpu::Single> singles, std::uint64_t watermark, bool counts) {
    while (!singles.empty()) {
        const auto taken = singles.first(std::min<std::size_t>(singles.size(), slice_singles_ - filled_));
        std::copy(taken.begin(), taken.end(), buffers_[filling_] + filled_);
        filled_ += static_cast<std::uint32_t>(taken.size());
        singles = singles.subspan(taken.size());
        if (filled_ == slice_singles_) submit(watermark, {counts, {}});
    }
}

/// Decides what lies before `end`. Near the end of time no watermark does; then all singles are there.
void ShardSearch::submit_before(std::uint64_t end, Submitted what) {
    if (end < UINT64_MAX - reach_) {
        submit(end + reach_, what);
    } else {
        submit(UINT64_MAX, what, UINT64_MAX, end);
    }
}

void ShardSearch::submit(std::uint64_t watermark, Submitted what, std::optional<std::uint64_t> close_at,
                         std::optional<std::uint64_t> decide_before) {
    gpu::Pipeline& pipeline = *backend_.pipeline;
    while (submitted_.size() == pipeline.depth())
        collect();
    const gpu::Single* const buffer = buffers_[filling_];
    spans_[filling_] = {reinterpret_cast<const std::byte*>(buffer), filled_, 0, UINT64_MAX};
    gpu::Slice slice;
    slice.spans = std::span(&spans_[filling_], filled_ == 0 ? 0 : 1);
    slice.watermark = watermark;
    slice.ends_interval = what.second.has_value();
    slice.close_at = close_at;
    slice.decide_before = decide_before;
    pipeline.submit(slice);
    submitted_.push_back(what);
    filling_ = (filling_ + 1) % buffers_.size();
    filled_ = 0;
}

void ShardSearch::collect() {
    backend_.pipeline->collect(slice_, true);
    const Submitted what = submitted_.front();
    submitted_.pop_front();
    if (!slice_.coincidences.empty()) {
        result_.coincidences.push_back(std::move(slice_.coincidences));
        slice_.coincidences = {};
    }
    if (what.counts) result_.taken += slice_.frames;
    result_.counts += slice_.counts;
    if (what.second) result_.sums.emplace_back(*what.second, std::move(slice_.sums));
}

}  // namespace petacq::petlm
