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
      sort_bytes_(sort::scratch_bytes(engine_, static_cast<std::uint32_t>(room_for_singles(o)))),
      run_bytes_(run_scratch_bytes(static_cast<std::uint32_t>(room_for_singles(o)))) {
    for (SingleArrays& sorted : sorted_)
        sorted = SingleArrays::of(memory, room_for_singles(o));
    sort_scratch_ = memory.device<std::byte>(sort_bytes_);
    run_totals_ = memory.device<RunTotals>(1);
    host_run_totals_ = memory.pinned<RunTotals>(1);
}

void Ordering::order(DeviceSlice& slice, const SingleArrays& ready, cudaStream_t stream) {
    const nvtx3::scoped_range range{"order"};
    which_ = 1 - which_;
    slice.singles.sorted = sorted_[which_];
    const ConvertTotals& t = *slice.singles.host_totals;
    sort::launch(sort::chosen(engine_, t.ready), sort_scratch_, sort_bytes_, by_time(ready),
                 by_time(sorted_[which_]), t.ready, bits_of(t.max_key), stream);
}

void Ordering::complete(DeviceSlice& slice, Single* out, cudaStream_t stream) const {
    const std::uint32_t ready = slice.singles.host_totals->ready;
    SearchTotals* const totals = slice.records.totals;
    clear(totals, sizeof(SearchTotals), stream);
    if (sort::is_stable(sort::chosen(engine_, ready))) {
        launch_pack(slice.singles.sorted, ready, slice.late_below, out, &totals->long_run, stream);
    } else {
        // The engine has already ordered equal times by value.
        launch_pack_ordered(slice.singles.sorted, ready, slice.late_below, out, stream);
    }
}

void Ordering::complete_long_runs(DeviceSlice& slice, Single* out, void* scratch, cudaStream_t stream) {
    const nvtx3::scoped_range range{"order long runs"};
    // The ready arrays already belong to the next slice. The memory of the packed singles has room for two
    // keys.
    const SingleArrays sorted = slice.singles.sorted;
    const std::uint32_t ready = slice.singles.host_totals->ready;
    auto* const numbers = reinterpret_cast<std::uint32_t*>(out);
    clear(slice.records.totals, sizeof(SearchTotals), stream);
    clear(run_totals_, sizeof(RunTotals), stream);
    launch_number_times(scratch, run_bytes_, sorted, ready, numbers, run_totals_, stream);
    to_host(host_run_totals_, run_totals_, 1, stream);
    numbered_.record(stream);
    numbered_.wait("numbering times");
    const KeyPacking packing = KeyPacking::of(*host_run_totals_, crystals_);
    if (packing.bits() <= 64) {
        launch_order_runs(scratch, run_bytes_, sorted, ready, packing, slice.late_below, out, stream);
        return;
    }
    // Too many different times to pack: sort by value, then by time, back into the same arrays. Only stable
    // engines leave long runs of equal times.
    auto* const space = reinterpret_cast<std::uint64_t*>(out);
    const SingleArrays between{space, space + ready};
    sort::launch(engine_, scratch, sort_bytes_, by_value(sorted), by_value(between), ready,
                 32 + bits_of(crystals_ - 1), stream);
    sort::launch(engine_, scratch, sort_bytes_, by_time(between), by_time(sorted), ready,
                 bits_of(slice.singles.host_totals->max_key), stream);
    launch_pack_ordered(sorted, ready, slice.late_below, out, stream);
}

}  // namespace petacq::gpu::cuda
