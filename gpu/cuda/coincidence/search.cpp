// Finds the coincidences among ordered singles on the device, with the same records as
// gpu/cpu/coincidence.cpp.
//
// The greedy scan of window modes "single" and "single_opener" is exact and parallel. The singles are cut
// into tiles. The place where the scan leaves a tile rarely depends on where it enters, because a gap wider
// than the window starts a new group regardless of what precedes it. tile_exits finds the exit of each tile
// or, where there are several, one for each possible entry. compose and expand follow the exits from tile to
// tile. count_prompts then knows the entry of each tile and marks the groups of all tiles in parallel.
// Shifted groups need the groups of the undecided singles as well, so these tiles are marked, too.
#include "gpu/cuda/coincidence/search.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <nvtx3/nvtx3.hpp>
#include <stdexcept>

#include "gpu/cuda/base/copies.hpp"
#include "gpu/cuda/base/parts.hpp"
#include "gpu/cuda/coincidence/count_kernels.hpp"
#include "gpu/cuda/coincidence/emit_kernels.hpp"
#include "gpu/cuda/coincidence/group_kernels.hpp"
#include "gpu/cuda/transfer/transfer_kernels.hpp"
#include "gpu/rules/record_order.hpp"

namespace petacq::gpu::cuda {

namespace {

/// Places the lists of the search for `singles` singles and returns their size in bytes.
std::size_t place_lists(void* memory, std::uint32_t singles, SearchArguments& a) {
    const std::size_t tiles = tiles_for(singles) + 1;
    Parts parts(memory);
    a.exits = parts.take<std::uint32_t>(singles);
    a.super_exits = parts.take<std::uint32_t>(singles);
    a.tile_exit = parts.take<std::uint32_t>(tiles);
    a.tile_reach = parts.take<std::uint32_t>(tiles);
    a.super_exit = parts.take<std::uint32_t>(tiles);
    a.entries = parts.take<std::uint32_t>(tiles);
    if (a.rules.shifted) a.marks = parts.take<std::uint32_t>(tiles * mark_words);
    for (EmitterLists* lists : {&a.prompts, &a.delayeds}) {
        if (lists == &a.delayeds && !a.rules.delayeds) break;
        lists->emitters = parts.take<Emitter>(tiles * single_tile);
        lists->emitter_counts = parts.take<std::uint32_t>(tiles);
        lists->records = parts.take<std::uint64_t>(tiles);
    }
    return parts.bytes();
}

/// With its tables on the device.
PairRule rule_on_device(const PipelineOptions& o, Memory& memory) {
    PairRule rule = PairRule::of(o.geometry, o.rules);
    if (o.geometry.is_ring()) return rule;
    const config::PairGeometry& pairs = *o.geometry.pairs;
    rule.crystals = memory.copy_of(std::span(pairs.crystals));
    rule.groups = memory.copy_of(std::span(pairs.groups));
    rule.may_pair = memory.copy_of(std::span(pairs.may_pair));
    return rule;
}

}  // namespace

CoincidenceSearch::CoincidenceSearch(const PipelineOptions& o, Memory& memory, std::size_t scratch_bytes)
    : rules_(o.rules),
      emit_singles_(o.emit_singles),
      max_pending_(o.max_pending_singles),
      room_(room_for_singles(o)),
      sums_(o.geometry, memory) {
    for (Single*& ordered : ordered_)
        ordered = memory.device<Single>(room_);
    const std::vector<std::uint16_t> modules = modules_of_crystals(o.geometry);
    base_.module_of = memory.copy_of(std::span(modules));
    base_.rules = {rule_on_device(o, memory),
                   rules_.policy,
                   rules_.search && rules_.one_window_each(),
                   rules_.opener_only(),
                   rules_.delay.has_value(),
                   rules_.delay && rules_.delayeds == DelayedRule::shifted_group,
                   rules_.window,
                   rules_.max_multiplicity,
                   rules_.delay.value_or(0)};
    const auto singles = static_cast<std::uint32_t>(room_);
    scratch_ = memory.device<std::byte>(std::max(scratch_bytes, place_lists(nullptr, singles, base_)));
    place_lists(scratch_, singles, base_);
    const std::uint32_t records = SliceRecords::room_for(o);
    records_ = memory.device<Coincidence>(records);
    if (!rules_.delay) return;
    prompts_ = memory.device<Coincidence>(records);
    delayeds_ = memory.device<Coincidence>(records);
}

void CoincidenceSearch::reset() {
    count_ = 0;
    begin_ = 0;
    taken_ = 0;
    horizon_ = 0;
    newest_ = 0;
    sums_.reset();
}

void CoincidenceSearch::carry_over(const DeviceSlice& slice, cudaStream_t stream) {
    const std::uint32_t ready = slice.singles.host_totals->ready;
    carried_ = count_ - begin_;
    if (std::uint64_t{carried_} + ready > room_) {
        throw std::runtime_error(
            fmt::format("{} singles to be ordered in one slice, and {} within window and delay of the "
                        "watermark: room for "
                        "{} (max_slice_frames + max_pending_singles)",
                        ready, carried_, room_));
    }
    count_ = carried_ + ready;
    const Single* const from = ordered_[which_] + begin_;
    which_ = 1 - which_;
    if (emit_singles_) order_after(read_[which_], stream);
    if (carried_ > 0) {
        check(cudaMemcpyAsync(ordered_[which_], from, carried_ * sizeof(Single), cudaMemcpyDeviceToDevice,
                              stream),
              "cudaMemcpyAsync", "carrying singles over");
    }
    sums_.start_slice(stream);
}

SearchArguments CoincidenceSearch::arguments(const DeviceSlice& slice) const {
    SearchArguments a = base_;
    a.singles = ordered_[which_];
    a.count = count_;
    a.taken = taken_;
    a.totals = slice.records.totals;
    a.ends_segment = slice.input.ends_segment();
    a.everything = slice.input.is_everything();
    a.horizon = slice.records.horizon;
    a.segment_end = slice.input.close_at.value_or(UINT64_MAX);
    a.sums = sums_.arrays();
    return a;
}

void CoincidenceSearch::search(DeviceSlice& slice, cudaStream_t stream) {
    const Slice& input = slice.input;
    SliceRecords& to = slice.records;
    const std::uint64_t reach = rules_.reach();
    const std::uint64_t by_watermark = input.watermark > reach ? input.watermark - reach : 0;
    // It never goes back: what lies below has been decided and given out.
    horizon_ = std::max(horizon_,
                        input.ends_segment() ? *input.close_at : input.decide_before.value_or(by_watermark));
    to.horizon = horizon_;
    const SearchArguments a = arguments(slice);
    launch_bounds(a, stream);
    if (!rules_.search) {
        launch_add_singles(a, stream);
        to_host(to.host_totals, to.totals, 1, stream);
        return;
    }
    launch_groups(a, stream);
    launch_counts(a, stream);
    if (a.rules.delayeds) {
        launch_emit(a, Kind::prompt, 0, to.room, prompts_, stream);
        launch_emit(a, Kind::delayed, 0, to.room, delayeds_, stream);
        launch_merge(to.totals, prompts_, delayeds_, to.room, records_, stream);
    } else {
        launch_emit(a, Kind::prompt, 0, to.room, records_, stream);
    }
    launch_disorders(to.totals, records_, to.room, stream);
    launch_pack_records(to.totals, records_, to.room, to.packing, to.packed, stream);
    to_host(to.host_totals, to.totals, 1, stream);
}

void CoincidenceSearch::download(DeviceSlice& slice, cudaStream_t compute, const Stream& down) {
    const nvtx3::scoped_range range{"download"};
    SliceRecords& to = slice.records;
    const SearchTotals& t = *to.host_totals;
    to.many.clear();
    to.count = 0;
    if (t.prompts + t.delayeds <= to.room) {
        to.count = static_cast<std::uint32_t>(t.prompts + t.delayeds);
        to_host(to.host_packed, to.packed, to.count * to.packing.record_bytes(), down);
    } else {
        download_in_parts(slice, compute, down);
    }
    if (slice.input.ends_interval) sums_.copy_to(to.host_sums, down);
    to.many_singles.clear();
    to.single_count = 0;
    if (!emit_singles_) return;
    const Single* const singles = ordered_[which_];
    if (t.decided <= to.single_room) {
        to.single_count = t.decided;
        to_host(to.host_singles, singles, t.decided, down);
    } else {
        to.many_singles.resize(t.decided);
        to_host(to.many_singles.data(), singles, t.decided, down);
    }
    read_[which_].record(down);
}

void CoincidenceSearch::download_in_parts(DeviceSlice& slice, cudaStream_t compute, const Stream& down) {
    const SearchTotals& t = *slice.records.host_totals;
    std::vector<Coincidence>& all = slice.records.many;
    download_kind(slice, Kind::prompt, t.prompts, many_prompts_, compute, down);
    download_kind(slice, Kind::delayed, t.delayeds, many_delayeds_, compute, down);
    all.resize(many_prompts_.size() + many_delayeds_.size());
    std::merge(many_prompts_.begin(), many_prompts_.end(), many_delayeds_.begin(), many_delayeds_.end(),
               all.begin(), [](const Coincidence& a, const Coincidence& b) { return before(a, b); });
}

void CoincidenceSearch::download_kind(const DeviceSlice& slice, Kind kind, std::uint64_t total,
                                      std::vector<Coincidence>& all, cudaStream_t compute,
                                      const Stream& down) {
    const std::uint32_t room = slice.records.room;
    SearchArguments a = arguments(slice);
    all.resize(total);
    for (std::uint64_t low = 0; low < total; low += room) {
        a.add_pairs = low > 0;  // search() has added those of the first part
        launch_emit(a, kind, low, room, records_, compute);
        part_.record(compute);
        down.wait_for(part_);
        to_host(all.data() + low, records_, std::min<std::uint64_t>(total - low, room), down);
        check(cudaStreamSynchronize(down), "cudaStreamSynchronize", "copying results to the host");
    }
    order_equal_times(all);
}

void CoincidenceSearch::take_totals(DeviceSlice& slice) {
    const SearchTotals& t = *slice.records.host_totals;
    const ConvertTotals& converted = *slice.singles.host_totals;
    begin_ = t.decided;
    taken_ = slice.input.ends_segment() ? 0 : t.next - t.decided;
    SliceResult& result = slice.result;
    SingleCounts& c = result.counts;
#define PETACQ_TAKE(section, name, ...) c.name = t.counts[count_##name];
    PETACQ_SINGLE_COUNTERS(PETACQ_TAKE)
#undef PETACQ_TAKE
    c.decided = t.next - t.first_anchor;
    c.delayeds = t.delayeds;
    c.unsearched = rules_.search ? 0 : c.decided;
    sums_.add(c);
    if (slice.input.ends_interval) result.sums.counts = sums_.take_counts();
    const std::uint64_t undecided = count_ - begin_ - taken_;
    result.pending = undecided + converted.pending;
    if (converted.ready + converted.gammas > 0)
        newest_ = std::max(newest_, slice.late_below + converted.max_key);
    newest_ = std::max(newest_, converted.max_pending_time);
    slice.records.newest = newest_;
    if (result.pending > max_pending_) {
        throw std::runtime_error(
            fmt::format("{} singles wait to be decided, {} of them within window and delay of the watermark: "
                        "at most {} (max_pending_singles)",
                        result.pending, undecided, max_pending_));
    }
}

}  // namespace petacq::gpu::cuda
