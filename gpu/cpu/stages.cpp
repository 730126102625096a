#include "gpu/cpu/stages.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace petacq::gpu {

ConversionStage::ConversionStage(const PipelineOptions& options, const config::Calibration& calibration,
                                 ChunkStore& chunks)
    : geometry_(options.geometry),
      convert_(options.input == Input::singles ? take_singles : convert_frames),
      tables_(std::make_unique<const HostTables>(options, calibration)),
      chunks_(chunks) {
    if (options.spectra) spectra_ = std::make_unique<HostSpectra>(options.geometry, options.threads);
    for (std::uint32_t i = 0; i < options.threads; ++i)
        threads_.push_back(std::make_unique<Thread>(options.geometry));
}

void ConversionStage::convert(HostSlice& slice, std::size_t part_number, std::uint32_t thread_number,
                              TaskPool& pool, std::uint64_t collected, unsigned bin_width) {
    HostSlice::Part& part = slice.parts[part_number];
    part.converted.counts = {};
    part.converted.tags.clear();
    const std::uint64_t begin = slice.frames * part_number / slice.parts.size();
    const std::uint64_t end = slice.frames * (part_number + 1) / slice.parts.size();
    if (begin == end) return;
    Thread& thread = *threads_[thread_number];
    LocalHistograms& histograms = thread.histograms.of_slice(slice.number, collected);
    thread.converted.resize(Chunk::max_singles + 1);
    Single* const out = thread.converted.data();
    FrameCursor cursor(slice.input.spans, begin);
    for (std::uint64_t at = begin; at < end;) {
        const std::uint64_t frames = std::min<std::uint64_t>(end - at, Chunk::max_singles);
        const std::size_t n =
            spectra_ && slice.input.spectra
                ? spectra_->count(thread_number,
                                  [&](FrameLists& lists) {
                                      return convert_and_count(cursor, frames, slice.late_below, *tables_,
                                                               part.converted, histograms, out, lists,
                                                               *slice.input.spectra);
                                  })
                : convert_(cursor, frames, slice.late_below, *tables_, part.converted, histograms, out);
        at += frames;
        if (n > 0) {
            part.chunks.push_back(chunks_.take());
            part.chunks.back()->fill({out, n}, bin_width);
        }
        if (!pool.help(thread_number)) return;
    }
}

void ConversionStage::histograms(SinglesHistograms& out, std::uint64_t collected) {
    out = make_histograms(geometry_);
    for (const auto& thread : threads_)
        thread->histograms.add_to(out, collected);
}

std::size_t OrderStage::start(HostSlice& slice) {
    std::vector<std::unique_ptr<Chunk>>& all = slice.parts.front().chunks;
    for (HostSlice::Part& part : std::span(slice.parts).subspan(1)) {
        std::move(part.chunks.begin(), part.chunks.end(), std::back_inserter(all));
        part.chunks.clear();
    }
    slice.newest = 0;
    for (const auto& chunk : all)
        slice.newest = std::max(slice.newest, chunk->high());
    const bool everything = slice.input.is_everything();
    orderer_.start(all, everything ? std::nullopt : std::optional(slice.input.watermark));
    return orderer_.misfits();
}

std::size_t OrderStage::plan(HostSlice& slice) {
    orderer_.plan();
    slice.singles.clear();
    slice.singles.resize(carry_.size() + orderer_.size());
    return 1 + orderer_.groups();
}

void OrderStage::order(HostSlice& slice, std::size_t part) {
    if (part == 0) {
        std::copy(carry_.begin(), carry_.end(), slice.singles.data());
    } else {
        orderer_.sort(part - 1, slice.singles.data() + carry_.size());
    }
}

/// All windows that end below the watermark are decided, or, towards the end of a segment, those that start
/// below `decide_before` or the end.
void OrderStage::finish(HostSlice& slice) {
    orderer_.finish();
    const std::span<const Single> singles(slice.singles);
    const std::uint64_t by_watermark = slice.input.watermark > reach_ ? slice.input.watermark - reach_ : 0;
    slice.horizon = slice.input.decide_before.value_or(by_watermark);
    const auto below = [&](std::uint64_t limit) {
        const auto end = std::partition_point(singles.begin(), singles.end(),
                                              [=](const Single& s) { return s.time < limit; });
        return static_cast<std::size_t>(end - singles.begin());
    };
    std::size_t of_segment = singles.size();
    if (slice.input.close_at && *slice.input.close_at != UINT64_MAX)
        of_segment = below(*slice.input.close_at);
    slice.search.singles = singles.first(of_segment);
    slice.search.decided = slice.input.ends_segment() ? of_segment : below(slice.horizon);
    carry_ = singles.subspan(slice.search.decided);
}

void OrderStage::reset() {
    orderer_.reset();
    carry_ = {};
}

std::size_t SearchStage::start(HostSlice& slice) {
    if (slice.input.ends_segment()) taken_ = std::min(taken_, slice.search.decided);
    finder_.divide(slice.search, taken_, held_);
    return slice.search.count;
}

void SearchStage::finish(HostSlice& slice) {
    SliceResult& result = slice.result;
    result.frames = {};
    result.tag_counts = {};
    for (const HostSlice::Part& part : slice.parts) {
        result.frames += part.converted.counts;
        result.tag_counts += part.converted.tags.counts;
        tags_.add(part.converted.tags.tags);
    }
    tags_.release(slice.input.watermark, slice.input.close_at, result.tags);
    result.counts = {};
    for (const Search::Share& share : slice.search.in_use())
        result.counts += share.counts;
    counts_ += result.counts;
    if (slice.input.ends_interval) take_sums(result.sums);
    pending_ += result.frames.accepted;
    pending_ -= result.counts.decided;
    newest_ = std::max(newest_, slice.newest);
    result.pending = pending_;
    result.latest_pending_time = pending_ > 0 ? newest_ : 0;
    tags_.describe(result);
    held_.clear();
    taken_ = 0;
    if (slice.input.ends_segment()) return;
    for (Search::Share& share : slice.search.in_use()) {
        hold(share.records, slice.horizon);
        taken_ = std::max(taken_, share.next);
    }
    taken_ -= slice.search.decided;
}

void SearchStage::take_sums(IntervalSums& out) {
    out = none_;
    for (ThreadSums& sums : sums_)
        sums.move_to(out);
    out.counts = std::exchange(counts_, {});
}

/// A pair within a group may start at or above the horizon. It is held back, since delayeds of that time are
/// still to come.
void SearchStage::hold(std::vector<Coincidence>& records, std::uint64_t horizon) {
    if (records.empty() || records.back().time < horizon) return;
    const auto from = std::partition_point(records.begin(), records.end(),
                                           [=](const Coincidence& c) { return c.time < horizon; });
    held_.insert(held_.end(), from, records.end());
    records.erase(from, records.end());
}

void SearchStage::deliver(HostSlice& slice) const {
    RecordVector<Coincidence>& out = slice.result.coincidences;
    std::size_t records = 0;
    for (const Search::Share& share : slice.search.in_use())
        records += share.records.size();
    if (out.capacity() < records) {
        out.clear();
        out.reserve(records + records / 8);
    }
    out.resize(records);
    auto to = out.begin();
    for (const Search::Share& share : slice.search.in_use())
        to = std::copy(share.records.begin(), share.records.end(), to);
    RecordVector<Single>& singles = slice.result.singles;
    if (emit_singles_ && slice.search.decided == slice.singles.size()) {
        std::swap(singles, slice.singles);  // nothing is carried over to the next slice
    } else {
        const auto decided = std::span(slice.singles).first(emit_singles_ ? slice.search.decided : 0);
        singles.assign(decided.begin(), decided.end());
    }
}

void SearchStage::reset() {
    taken_ = 0;
    held_.clear();
    for (ThreadSums& sums : sums_)
        sums.clear();
    counts_ = {};
    pending_ = 0;
    newest_ = 0;
    tags_.reset();
}

}  // namespace petacq::gpu
