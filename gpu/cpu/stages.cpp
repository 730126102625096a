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

void ConversionStage::convert(Slot& slot, std::size_t part_number, std::uint32_t thread_number,
                              TaskPool& pool, std::uint64_t collected, unsigned bin_width) {
    Slot::Part& part = slot.parts[part_number];
    part.converted.counts = {};
    part.converted.tags.clear();
    const std::uint64_t begin = slot.frames * part_number / slot.parts.size();
    const std::uint64_t end = slot.frames * (part_number + 1) / slot.parts.size();
    if (begin == end) return;
    Thread& thread = *threads_[thread_number];
    LocalHistograms& histograms = thread.histograms.of_slice(slot.number, collected);
    thread.converted.resize(Chunk::max_singles + 1);
    Single* const out = thread.converted.data();
    FrameCursor cursor(slot.spans, begin);
    for (std::uint64_t at = begin; at < end;) {
        const std::uint64_t frames = std::min<std::uint64_t>(end - at, Chunk::max_singles);
        const std::size_t n =
            spectra_ && slot.spectra
                ? spectra_->count(thread_number,
                                  [&](FrameLists& lists) {
                                      return convert_and_count(cursor, frames, slot.late_below, *tables_,
                                                               part.converted, histograms, out, lists,
                                                               *slot.spectra);
                                  })
                : convert_(cursor, frames, slot.late_below, *tables_, part.converted, histograms, out);
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

std::size_t OrderStage::start(Slot& slot) {
    std::vector<std::unique_ptr<Chunk>>& all = slot.parts.front().chunks;
    for (Slot::Part& part : std::span(slot.parts).subspan(1)) {
        std::move(part.chunks.begin(), part.chunks.end(), std::back_inserter(all));
        part.chunks.clear();
    }
    slot.newest = 0;
    for (const auto& chunk : all)
        slot.newest = std::max(slot.newest, chunk->high());
    const bool everything = slot.close_at == UINT64_MAX;
    orderer_.start(all, everything ? std::nullopt : std::optional(slot.watermark));
    return orderer_.misfits();
}

std::size_t OrderStage::plan(Slot& slot) {
    orderer_.plan();
    slot.singles.clear();
    slot.singles.resize(carry_.size() + orderer_.size());
    return 1 + orderer_.groups();
}

void OrderStage::order(Slot& slot, std::size_t part) {
    if (part == 0) {
        std::copy(carry_.begin(), carry_.end(), slot.singles.data());
    } else {
        orderer_.sort(part - 1, slot.singles.data() + carry_.size());
    }
}

/// All windows that end below the watermark are decided, or, towards the end of a segment, those that start
/// below `decide_before` or the end.
void OrderStage::finish(Slot& slot) {
    orderer_.finish();
    const std::span<const Single> singles(slot.singles);
    const std::uint64_t by_watermark = slot.watermark > reach_ ? slot.watermark - reach_ : 0;
    slot.horizon = slot.decide_before.value_or(by_watermark);
    const auto below = [&](std::uint64_t limit) {
        const auto end = std::partition_point(singles.begin(), singles.end(),
                                              [=](const Single& s) { return s.time < limit; });
        return static_cast<std::size_t>(end - singles.begin());
    };
    std::size_t of_segment = singles.size();
    if (slot.close_at && *slot.close_at != UINT64_MAX) of_segment = below(*slot.close_at);
    slot.search.singles = singles.first(of_segment);
    slot.search.decided = slot.ends_segment() ? of_segment : below(slot.horizon);
    carry_ = singles.subspan(slot.search.decided);
}

void OrderStage::reset() {
    orderer_.reset();
    carry_ = {};
}

std::size_t SearchStage::start(Slot& slot) {
    if (slot.ends_segment()) taken_ = std::min(taken_, slot.search.decided);
    finder_.divide(slot.search, taken_, held_);
    return slot.search.count;
}

void SearchStage::finish(Slot& slot) {
    SliceResult& result = slot.result;
    result.frames = {};
    result.tag_counts = {};
    for (const Slot::Part& part : slot.parts) {
        result.frames += part.converted.counts;
        result.tag_counts += part.converted.tags.counts;
        tags_.add(part.converted.tags.tags);
    }
    tags_.release(slot.watermark, slot.close_at, result.tags);
    result.counts = {};
    for (const Search::Share& share : slot.search.in_use())
        result.counts += share.counts;
    counts_ += result.counts;
    if (slot.ends_interval) take_sums(result.sums);
    pending_ += result.frames.accepted;
    pending_ -= result.counts.decided;
    newest_ = std::max(newest_, slot.newest);
    result.pending = pending_;
    result.latest_pending_time = pending_ > 0 ? newest_ : 0;
    tags_.describe(result);
    held_.clear();
    taken_ = 0;
    if (slot.ends_segment()) return;
    for (Search::Share& share : slot.search.in_use()) {
        hold(share.records, slot.horizon);
        taken_ = std::max(taken_, share.next);
    }
    taken_ -= slot.search.decided;
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

void SearchStage::deliver(Slot& slot) const {
    RecordVector<Coincidence>& out = slot.result.coincidences;
    std::size_t records = 0;
    for (const Search::Share& share : slot.search.in_use())
        records += share.records.size();
    if (out.capacity() < records) {
        out.clear();
        out.reserve(records + records / 8);
    }
    out.resize(records);
    auto to = out.begin();
    for (const Search::Share& share : slot.search.in_use())
        to = std::copy(share.records.begin(), share.records.end(), to);
    RecordVector<Single>& singles = slot.result.singles;
    if (emit_singles_ && slot.search.decided == slot.singles.size()) {
        std::swap(singles, slot.singles);  // nothing is carried over to the next slice
    } else {
        const auto decided = std::span(slot.singles).first(emit_singles_ ? slot.search.decided : 0);
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
