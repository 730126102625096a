#include "gpu/cpu/stages.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "gpu/rules/record_order.hpp"
#include "gpu/triples/triple_search.hpp"

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
                              TaskPool& pool, std::uint64_t collected, const BinWidths& widths) {
    HostSlice::Part& part = slice.parts[part_number];
    part.converted.counts = {};
    part.converted.tags.clear();
    const std::uint64_t begin = slice.frames * part_number / slice.parts.size();
    const std::uint64_t end = slice.frames * (part_number + 1) / slice.parts.size();
    if (begin == end) return;
    Thread& thread = *threads_[thread_number];
    LocalHistograms& histograms = thread.histograms.of_slice(slice.number, collected);
    thread.converted.resize(Chunk::max_singles + 1);
    SinglesOut out{thread.converted.data()};
    if (tables_->frames.view().gammas) {
        thread.gammas.resize(Chunk::max_singles + 1);
        out.gammas = thread.gammas.data();
    }
    const auto fill = [&](std::vector<std::unique_ptr<Chunk>>& chunks, std::span<const Single> singles,
                          unsigned width) {
        if (singles.empty()) return;
        chunks.push_back(chunks_.take());
        chunks.back()->fill(singles, width);
    };
    FrameCursor cursor(slice.input.spans, begin);
    for (std::uint64_t at = begin; at < end;) {
        const std::uint64_t frames = std::min<std::uint64_t>(end - at, Chunk::max_singles);
        const SinglesWritten written =
            spectra_ && slice.input.spectra
                ? spectra_->count(thread_number,
                                  [&](FrameLists& lists) {
                                      return convert_and_count(cursor, frames, slice.late_below, *tables_,
                                                               part.converted, histograms, out, lists,
                                                               *slice.input.spectra);
                                  })
                : convert_(cursor, frames, slice.late_below, *tables_, part.converted, histograms, out);
        at += frames;
        fill(part.chunks, {out.pairs, written.pairs}, widths.singles);
        fill(part.gamma_chunks, {out.gammas, written.gammas}, widths.gammas);
        if (!pool.help(thread_number)) return;
    }
}

void ConversionStage::histograms(SinglesHistograms& out, std::uint64_t collected) {
    out = make_histograms(geometry_);
    out.energy_bin_keV = tables_->frames.view().singles_bin_keV();
    for (const auto& thread : threads_)
        thread->histograms.add_to(out, collected);
}

namespace {

/// The chunks of all parts, in those of the first.
std::vector<std::unique_ptr<Chunk>>& gather(std::vector<HostSlice::Part>& parts,
                                            std::vector<std::unique_ptr<Chunk>> HostSlice::Part::*chunks) {
    std::vector<std::unique_ptr<Chunk>>& all = parts.front().*chunks;
    for (HostSlice::Part& part : std::span(parts).subspan(1)) {
        std::move((part.*chunks).begin(), (part.*chunks).end(), std::back_inserter(all));
        (part.*chunks).clear();
    }
    return all;
}

std::size_t count_below(std::span<const Single> singles, std::uint64_t time) {
    const auto end =
        std::partition_point(singles.begin(), singles.end(), [=](const Single& s) { return s.time < time; });
    return static_cast<std::size_t>(end - singles.begin());
}

}  // namespace

std::size_t OrderStage::start(HostSlice& slice) {
    const bool everything = slice.input.is_everything();
    const auto limit = everything ? std::nullopt : std::optional(slice.input.watermark);
    slice.newest = 0;
    const auto start = [&](Orderer& orderer, std::vector<std::unique_ptr<Chunk>>& chunks) {
        for (const auto& chunk : chunks)
            slice.newest = std::max(slice.newest, chunk->high());
        orderer.start(chunks, limit);
        return orderer.misfits();
    };
    const std::size_t misfits = start(orderer_, gather(slice.parts, &HostSlice::Part::chunks));
    return misfits + start(gamma_orderer_, gather(slice.parts, &HostSlice::Part::gamma_chunks));
}

void OrderStage::refit(std::size_t i) {
    const std::size_t singles = orderer_.misfits();
    i < singles ? orderer_.refit(i) : gamma_orderer_.refit(i - singles);
}

std::size_t OrderStage::plan(HostSlice& slice) {
    orderer_.plan();
    gamma_orderer_.plan();
    slice.singles.clear();
    slice.singles.resize(carry_.size() + orderer_.size());
    slice.gammas.clear();
    slice.gammas.resize(gamma_carry_.size() + gamma_orderer_.size());
    return 1 + orderer_.groups() + gamma_orderer_.groups();
}

void OrderStage::order(HostSlice& slice, std::size_t part) {
    if (part == 0) {
        std::copy(carry_.begin(), carry_.end(), slice.singles.data());
        std::copy(gamma_carry_.begin(), gamma_carry_.end(), slice.gammas.data());
    } else if (part <= orderer_.groups()) {
        orderer_.sort(part - 1, slice.singles.data() + carry_.size());
    } else {
        gamma_orderer_.sort(part - 1 - orderer_.groups(), slice.gammas.data() + gamma_carry_.size());
    }
}

/// All windows that end below the watermark are decided, or, towards the end of a segment, those that start
/// below `decide_before` or the end.
void OrderStage::finish(HostSlice& slice) {
    orderer_.finish();
    gamma_orderer_.finish();
    const std::span<const Single> singles(slice.singles);
    const std::span<const Single> gammas(slice.gammas);
    const std::uint64_t by_watermark = slice.input.watermark > reach_ ? slice.input.watermark - reach_ : 0;
    // It never goes back: what lies below has been decided and given out.
    const Slice& input = slice.input;
    horizon_ = std::max(horizon_,
                        input.ends_segment() ? *input.close_at : input.decide_before.value_or(by_watermark));
    slice.horizon = horizon_;
    std::size_t of_segment = singles.size();
    std::size_t gammas_of_segment = gammas.size();
    if (slice.input.close_at && *slice.input.close_at != UINT64_MAX) {
        of_segment = count_below(singles, *slice.input.close_at);
        gammas_of_segment = count_below(gammas, *slice.input.close_at);
    }
    slice.search.singles = singles.first(of_segment);
    slice.search.gammas = gammas.first(gammas_of_segment);
    if (slice.input.ends_segment()) {
        slice.search.decided = of_segment;
        slice.gammas_below_horizon = slice.gammas_done = gammas_of_segment;
    } else {
        slice.search.decided = count_below(singles, slice.horizon);
        slice.gammas_below_horizon = count_below(slice.search.gammas, slice.horizon);
        slice.gammas_done =
            count_below(slice.search.gammas, slice.horizon - std::min(slice.horizon, gammas_before_));
    }
    carry_ = singles.subspan(slice.search.decided);
    gamma_carry_ = gammas.subspan(slice.gammas_done);
}

void OrderStage::reset() {
    orderer_.reset();
    gamma_orderer_.reset();
    carry_ = {};
    gamma_carry_ = {};
    horizon_ = 0;
}

std::size_t SearchStage::start(HostSlice& slice) {
    if (slice.input.ends_segment()) taken_ = std::min(taken_, slice.search.decided);
    finder_.divide(slice.search, taken_, held_);
    used_.resize(slice.search.gammas.size());  // what it has already is of the gammas carried over
    return slice.search.count;
}

void SearchStage::find_triples(const HostSlice& slice, Search::Share& share) {
    share.triples.clear();
    share.gamma_counts = {};
    const auto end = slice.input.ends_segment()
                         ? share.records.end()
                         : std::partition_point(share.records.begin(), share.records.end(),
                                                [&](const Coincidence& c) { return c.time < slice.horizon; });
    gpu::find_triples({share.records.begin(), end}, slice.search.gammas, *gammas_, used_, share.triples,
                      share.gamma_counts);
}

/// After all shares.
void SearchStage::count_gammas(HostSlice& slice) {
    GammaCounts& counts = slice.result.gamma_counts;
    counts = {};
    if (!gammas_) return;
    for (const Search::Share& share : slice.search.in_use())
        counts += share.gamma_counts;
    const auto done = used_.begin() + static_cast<std::ptrdiff_t>(slice.gammas_done);
    counts.unused = static_cast<std::uint64_t>(std::count(used_.begin(), done, 0));
    used_.erase(used_.begin(), done);
    slice.first_new_gamma = std::exchange(gammas_given_, slice.gammas_below_horizon - slice.gammas_done);
    gamma_counts_ += counts;
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
    count_gammas(slice);
    if (slice.input.ends_interval) take_sums(result.sums);
    pending_ += result.frames.accepted;
    pending_ -= result.counts.decided + result.gamma_counts.gammas();
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
    out.gammas = std::exchange(gamma_counts_, {});
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
    RecordVector<Triple>& triples = slice.result.triples;
    triples.clear();
    for (const Search::Share& share : slice.search.in_use())
        triples.insert(triples.end(), share.triples.begin(), share.triples.end());

    RecordVector<Single>& singles = slice.result.singles;
    singles.clear();
    if (!emit_singles_) return;
    const auto decided = std::span(slice.singles).first(slice.search.decided);
    const auto gammas =
        std::span(slice.gammas).first(slice.gammas_below_horizon).subspan(slice.first_new_gamma);
    if (!gammas.empty()) {
        singles.resize(decided.size() + gammas.size());
        std::merge(decided.begin(), decided.end(), gammas.begin(), gammas.end(), singles.begin(),
                   [](const Single& a, const Single& b) { return before(a, b); });
    } else if (decided.size() == slice.singles.size()) {
        std::swap(singles, slice.singles);  // nothing is carried over to the next slice
    } else {
        singles.assign(decided.begin(), decided.end());
    }
}

void SearchStage::reset() {
    taken_ = 0;
    held_.clear();
    for (ThreadSums& sums : sums_)
        sums.clear();
    counts_ = {};
    gamma_counts_ = {};
    used_.clear();
    gammas_given_ = 0;
    pending_ = 0;
    newest_ = 0;
    tags_.reset();
}

}  // namespace petacq::gpu
