#include "gpu/cuda/order/ordering.hpp"

#include <bit>
#include <nvtx3/nvtx3.hpp>

#include "gpu/cuda/base/copies.hpp"
#include "gpu/cuda/order/order_kernels.hpp"

namespace petacq::gpu::cuda {

namespace {

/// The bits in which numbers up to `highest` differ; the engines sort by at least one.
int bits_of(std::uint64_t highest) {
    return std::max(1, static_cast<int>(std::bit_width(highest)));
}

}  // namespace

Ordering::Ordering(const PipelineOptions& o, Memory& memory)
    : engine_(o.sort_engine),
      crystals_(o.geometry.crystal_count()),
      room_(room_for_singles(o)),
      sort_bytes_(sort::scratch_bytes(engine_, static_cast<std::uint32_t>(room_))),
      run_bytes_(run_scratch_bytes(static_cast<std::uint32_t>(room_))) {
    for (SingleArrays& sorted : sorted_)
        sorted = SingleArrays::of(memory, room_);
    sort_scratch_ = memory.device<std::byte>(sort_bytes_);
    run_totals_ = memory.device<RunTotals>(1);
    host_run_totals_ = memory.pinned<RunTotals>(1);
}

void Ordering::order(DeviceSlice& slice, const SingleArrays& ready, cudaStream_t stream) {
    const nvtx3::scoped_range range{"order"};
    which_ = 1 - which_;
    const ConvertTotals& t = *slice.singles.host_totals;
    const std::uint64_t first_gamma = room_ - t.gammas;
    slice.singles.sorted = sorted_[which_];
    slice.singles.sorted_gammas = sorted_[which_].from(first_gamma);
    sort_by_time(ready, slice.singles.sorted, t.ready, t, stream);
    if (t.gammas > 0) sort_by_time(ready.from(first_gamma), slice.singles.sorted_gammas, t.gammas, t, stream);
}

void Ordering::sort_by_time(const SingleArrays& from, const SingleArrays& to, std::uint32_t count,
                            const ConvertTotals& totals, cudaStream_t stream) {
    sort::launch(sort::chosen(engine_, count), sort_scratch_, sort_bytes_, by_time(from), by_time(to), count,
                 bits_of(totals.max_key), stream);
}

void Ordering::complete(DeviceSlice& slice, const OrderedOutput& out, cudaStream_t stream) const {
    const ConvertTotals& t = *slice.singles.host_totals;
    clear(slice.records.totals, sizeof(SearchTotals), stream);
    complete(slice.singles.sorted, t.ready, slice, out.singles, stream);
    if (t.gammas > 0) complete(slice.singles.sorted_gammas, t.gammas, slice, out.gammas, stream);
}

void Ordering::complete(const SingleArrays& sorted, std::uint32_t count, const DeviceSlice& slice,
                        Single* out, cudaStream_t stream) const {
    if (sort::is_stable(sort::chosen(engine_, count))) {
        launch_pack(sorted, count, slice.late_below, out, &slice.records.totals->long_run, stream);
    } else {
        // The engine has already ordered equal times by value.
        launch_pack_ordered(sorted, count, slice.late_below, out, stream);
    }
}

void Ordering::complete_long_runs(DeviceSlice& slice, const OrderedOutput& out, void* scratch,
                                  cudaStream_t stream) {
    const nvtx3::scoped_range range{"order long runs"};
    const ConvertTotals& t = *slice.singles.host_totals;
    clear(slice.records.totals, sizeof(SearchTotals), stream);
    if (t.ready > 0) complete_long_runs(slice.singles.sorted, t.ready, slice, out.singles, scratch, stream);
    if (t.gammas > 0)
        complete_long_runs(slice.singles.sorted_gammas, t.gammas, slice, out.gammas, scratch, stream);
}

void Ordering::complete_long_runs(const SingleArrays& sorted, std::uint32_t count, const DeviceSlice& slice,
                                  Single* out, void* scratch, cudaStream_t stream) {
    // The ready arrays already belong to the next slice. The memory of the packed singles has room for two
    // keys.
    auto* const numbers = reinterpret_cast<std::uint32_t*>(out);
    clear(run_totals_, sizeof(RunTotals), stream);
    launch_number_times(scratch, run_bytes_, sorted, count, numbers, run_totals_, stream);
    to_host(host_run_totals_, run_totals_, 1, stream);
    numbered_.record(stream);
    numbered_.wait("numbering times");
    const KeyPacking packing = KeyPacking::of(*host_run_totals_, crystals_);
    if (packing.bits() <= 64) {
        launch_order_runs(scratch, run_bytes_, sorted, count, packing, slice.late_below, out, stream);
        return;
    }
    // Too many different times to pack: sort by value, then by time, back into the same arrays. A stable
    // engine does it for either kind, since only one that is stable leaves long runs of equal times.
    auto* const space = reinterpret_cast<std::uint64_t*>(out);
    const SingleArrays between{space, space + count};
    sort::launch(engine_, scratch, sort_bytes_, by_value(sorted), by_value(between), count,
                 32 + bits_of(crystals_ - 1), stream);
    sort::launch(engine_, scratch, sort_bytes_, by_time(between), by_time(sorted), count,
                 bits_of(slice.singles.host_totals->max_key), stream);
    launch_pack_ordered(sorted, count, slice.late_below, out, stream);
}

}  // namespace petacq::gpu::cuda
