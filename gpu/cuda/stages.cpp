#include "gpu/cuda/stages.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <bit>
#include <nvtx3/nvtx3.hpp>
#include <utility>

#include "gpu/cuda/base/copies.hpp"
#include "gpu/cuda/base/parts.hpp"
#include "gpu/cuda/order/order.hpp"
#include "gpu/cuda/transfer/transfers.hpp"

namespace petacq::gpu::cuda {

namespace {

void from_device(std::uint64_t* to, int to_device, const std::uint64_t* from, int from_device,
                 std::size_t count, cudaStream_t stream) {
    if (count == 0) return;
    check(cudaMemcpyPeerAsync(to, to_device, from, from_device, count * sizeof(std::uint64_t), stream),
          "cudaMemcpyPeerAsync", "copying singles from another device");
}

/// Places the lists of the search for `singles` singles and returns their size in bytes.
std::size_t place_lists(void* memory, std::uint32_t singles, FindArguments& a) {
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

}  // namespace

Stages::Stages(const PipelineOptions& o, Converter& converter)
    : options_(o), converter_(converter), room_(room(o)) {
    Memory& memory = converter.memory();
    const auto singles = static_cast<std::uint32_t>(room_);
    value_bits_ = 32 + std::max(1, static_cast<int>(std::bit_width(o.geometry.crystal_count() - 1)));

    const auto arrays = [&] {
        return SingleArrays{memory.device<std::uint64_t>(room_), memory.device<std::uint64_t>(room_)};
    };
    ready_ = arrays();
    sorted_[0] = arrays();
    sorted_[1] = arrays();
    pending_arrays_[0] = arrays();
    pending_arrays_[1] = arrays();
    if (o.input == Input::frames) tags_ = memory.device<TagCell>(o.max_slice_frames);
    ordered_[0] = memory.device<Single>(room_);
    ordered_[1] = memory.device<Single>(room_);

    const CoincidenceRules& r = o.rules;
    const bool shifted = r.delay && r.delayeds == DelayedRule::shifted_group;
    for (SumArrays& sums : sums_) {
        sums =
            SumArrays::make(o.geometry, [&](std::size_t bytes) { return memory.device<std::byte>(bytes); });
    }
    const std::vector<std::uint8_t> modules = modules_of_crystals(o.geometry);
    find_base_.module_of = memory.copy_of(std::span(modules));
    find_base_.rules = {PairRule::of(o.geometry, r),
                        r.policy,
                        r.search && r.mode == WindowMode::single,
                        r.delay.has_value(),
                        shifted,
                        r.window,
                        r.max_multiplicity,
                        r.delay.value_or(0)};
    scratch_bytes_ = sort::scratch_bytes(o.sort_engine, singles);
    const std::size_t list_bytes = place_lists(nullptr, singles, find_base_);
    run_scratch_bytes_ = run_scratch_bytes(singles);
    run_totals_ = memory.device<RunTotals>(1);
    host_run_totals_ = memory.pinned<RunTotals>(1);
    order_scratch_ = memory.device<std::byte>(scratch_bytes_);
    scratch_ = memory.device<std::byte>(std::max({scratch_bytes_, run_scratch_bytes_, list_bytes}));
    place_lists(scratch_, singles, find_base_);
    const std::uint32_t records = Slot::record_room_for(o);
    records_ = memory.device<Coincidence>(records);
    if (r.delay) {
        prompts_ = memory.device<Coincidence>(records);
        delayeds_ = memory.device<Coincidence>(records);
    }
}

void Stages::reset() {
    count_ = 0;
    begin_ = 0;
    taken_ = 0;
    pending_ = 0;
    interval_begins_ = true;
    interval_counts_ = {};
}

ConvertOutput Stages::output() const {
    return {ready_, pending_arrays_[1 - pending_which_], tags_};
}

void Stages::convert(Slot& slot, cudaStream_t stream) {
    converter_.convert(slot, output(), waiting(), stream);
}

void Stages::join(Slot& slot, const Event& joined, cudaStream_t stream) {
    const nvtx3::scoped_range range{"join"};
    const std::uint32_t ready = slot.host_converted->ready;
    const std::uint32_t pending = slot.host_converted->pending;
    const ConvertOutput to = output();
    converter_.split(slot, to, waiting(), stream);
    joined.record(stream);
    const auto fetch = [&](const SingleArrays& here, const SingleArrays& there, std::uint32_t count) {
        from_device(here.time, converter_.device(), there.time, slot.device, count, stream);
        from_device(here.value, converter_.device(), there.value, slot.device, count, stream);
    };
    fetch(to.ready, slot.ahead.ready, ready);
    fetch(to.pending, slot.ahead.pending, pending);
}

void Stages::converted(const Slot& slot) {
    pending_ = slot.host_converted->pending;
    pending_which_ = 1 - pending_which_;
    if (pending_ > options_.max_pending_singles) {
        throw std::runtime_error(
            fmt::format("{} singles wait for the watermark: at most {} (max_pending_singles)", pending_,
                        options_.max_pending_singles));
    }
}

void Stages::order(Slot& slot, cudaStream_t stream) {
    const nvtx3::scoped_range range{"order"};
    sorted_which_ = 1 - sorted_which_;
    slot.sorted = sorted_which_;
    const ConvertTotals& t = *slot.host_converted;
    const int bits = std::max(1, static_cast<int>(std::bit_width(t.max_key)));
    sort::launch(sort::chosen(options_.sort_engine, t.ready), order_scratch_, scratch_bytes_, by_time(ready_),
                 by_time(sorted_[slot.sorted]), t.ready, bits, stream);
}

void Stages::find(Slot& slot, cudaStream_t stream) {
    const nvtx3::scoped_range range{"find"};
    const std::uint32_t ready = slot.host_converted->ready;
    const std::uint32_t carried = count_ - begin_;
    if (std::uint64_t{carried} + ready > room_) {
        throw std::runtime_error(
            fmt::format("{} singles to be ordered in one slice, and {} within window and delay of the "
                        "watermark: room for "
                        "{} (max_slice_frames + max_pending_singles)",
                        ready, carried, room_));
    }
    Single* const from = ordered_[which_] + begin_;
    which_ = 1 - which_;
    if (options_.emit_singles) {
        check(cudaStreamWaitEvent(stream, read_[which_], 0), "cudaStreamWaitEvent", "ordering the streams");
    }
    if (carried > 0) {
        check(cudaMemcpyAsync(ordered_[which_], from, carried * sizeof(Single), cudaMemcpyDeviceToDevice,
                              stream),
              "cudaMemcpyAsync", "carrying singles over");
    }
    begin_ = carried;
    count_ = carried + ready;
    if (interval_begins_) {
        sums_which_ = 1 - sums_which_;
        check(cudaStreamWaitEvent(stream, sums_read_[sums_which_], 0), "cudaStreamWaitEvent",
              "ordering the streams");
        clear(sums().memory, sums().bytes, stream);
        interval_begins_ = false;
    }
    clear(slot.found, sizeof(FindTotals), stream);
    Single* const to = ordered_[which_] + carried;
    if (is_stable(sort::chosen(options_.sort_engine, ready))) {
        launch_pack(sorted_[slot.sorted], ready, slot.late_below, to, &slot.found->long_run, stream);
    } else {
        // The engine has already ordered equal times by value.
        launch_pack_ordered(sorted_[slot.sorted], ready, slot.late_below, to, stream);
    }
    search(slot, stream);
}

void Stages::order_long_runs(Slot& slot, cudaStream_t stream) {
    const nvtx3::scoped_range range{"order long runs"};
    // The ready arrays already belong to the next slice. The memory of the packed singles has room for two
    // keys.
    const SingleArrays sorted = sorted_[slot.sorted];
    const std::uint32_t ready = slot.host_converted->ready;
    Single* const out = ordered_[which_] + begin_;
    auto* const numbers = reinterpret_cast<std::uint32_t*>(out);
    clear(slot.found, sizeof(FindTotals), stream);
    clear(run_totals_, sizeof(RunTotals), stream);
    launch_number_times(scratch_, run_scratch_bytes_, sorted, ready, numbers, run_totals_, stream);
    to_host(host_run_totals_, run_totals_, 1, stream);
    numbered_.record(stream);
    numbered_.wait("numbering times");
    const KeyPacking packing = KeyPacking::of(*host_run_totals_, options_.geometry.crystal_count());
    if (packing.bits() <= 64) {
        launch_order_runs(scratch_, run_scratch_bytes_, sorted, ready, packing, slot.late_below, out, stream);
        return;
    }
    // Too many different times to pack: sort by value, then by time, back into the same arrays.
    auto* const space = reinterpret_cast<std::uint64_t*>(out);
    const SingleArrays between{space, space + ready};
    const int bits = std::max(1, static_cast<int>(std::bit_width(slot.host_converted->max_key)));
    // Only stable engines leave long runs of equal times.
    sort::launch(options_.sort_engine, scratch_, scratch_bytes_, by_value(sorted), by_value(between), ready,
                 value_bits_, stream);
    sort::launch(options_.sort_engine, scratch_, scratch_bytes_, by_time(between), by_time(sorted), ready,
                 bits, stream);
    launch_pack_ordered(sorted, ready, slot.late_below, out, stream);
}

FindArguments Stages::find_arguments(const Slot& slot) const {
    FindArguments a = find_base_;
    a.singles = ordered_[which_];
    a.count = count_;
    a.taken = taken_;
    a.totals = slot.found;
    a.ends_segment = slot.ends_segment();
    a.everything = slot.everything();
    a.horizon = slot.horizon;
    a.segment_end = slot.close_at.value_or(UINT64_MAX);
    a.sums = sums();
    return a;
}

void Stages::search(Slot& slot, cudaStream_t stream) {
    const std::uint64_t reach = options_.rules.reach();
    const std::uint64_t by_watermark = slot.watermark > reach ? slot.watermark - reach : 0;
    slot.horizon = slot.ends_segment() ? *slot.close_at : slot.decide_before.value_or(by_watermark);
    const FindArguments a = find_arguments(slot);
    if (!options_.rules.search) {
        launch_take_all(a, stream);
        to_host(slot.host_found, slot.found, 1, stream);
        return;
    }
    launch_find(a, stream);
    if (a.rules.delayeds) {
        launch_emit(a, Kind::prompt, 0, slot.record_room, prompts_, stream);
        launch_emit(a, Kind::delayed, 0, slot.record_room, delayeds_, stream);
        launch_merge(slot.found, prompts_, delayeds_, slot.record_room, records_, stream);
    } else {
        launch_emit(a, Kind::prompt, 0, slot.record_room, records_, stream);
    }
    launch_disorders(slot.found, records_, slot.record_room, stream);
    launch_pack_records(slot.found, records_, slot.record_room, slot.packing, slot.records, stream);
    to_host(slot.host_found, slot.found, 1, stream);
}

void Stages::emit_part(const Slot& slot, Kind kind, std::uint64_t low, cudaStream_t stream) const {
    FindArguments a = find_arguments(slot);
    a.add_pairs = low > 0;  // search() has added those of the first part
    launch_emit(a, kind, low, slot.record_room, records_, stream);
}

void Stages::found(Slot& slot) {
    const FindTotals& t = *slot.host_found;
    begin_ = t.decided;
    taken_ = slot.ends_segment() ? 0 : t.next - t.decided;
    SliceResult& result = slot.result;
    SingleCounts& c = result.counts;
#define PETACQ_TAKE(section, name, ...) c.name = t.counts[count_##name];
    PETACQ_SINGLE_COUNTERS(PETACQ_TAKE)
#undef PETACQ_TAKE
    c.decided = t.next - t.first_anchor;
    c.delayeds = t.delayeds;
    c.unsearched = options_.rules.search ? 0 : c.decided;
    interval_counts_ += c;
    if (slot.ends_interval) result.sums.counts = std::exchange(interval_counts_, {});
    result.pending = std::uint64_t{count_} - begin_ - taken_ + slot.host_converted->pending;
    result.latest_pending_time =
        result.pending == 0 ? 0 : std::max(t.newest_time, slot.host_converted->max_pending_time);
    if (result.pending > options_.max_pending_singles) {
        throw std::runtime_error(
            fmt::format("{} singles wait to be decided, {} of them within window and delay of the watermark: "
                        "at most {} (max_pending_singles)",
                        result.pending, count_ - begin_ - taken_, options_.max_pending_singles));
    }
}

void Stages::sums_read(cudaStream_t stream) {
    sums_read_[sums_which_].record(stream);
    interval_begins_ = true;
}

void Stages::singles_read(cudaStream_t stream) {
    read_[which_].record(stream);
}

}  // namespace petacq::gpu::cuda
