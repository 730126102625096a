// The order of the ready singles of a slice, and of its ready gammas: first by time, then in total order.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "gpu/cuda/base/memory.hpp"
#include "gpu/cuda/base/single_arrays.hpp"
#include "gpu/cuda/order/long_run_kernels.hpp"
#include "gpu/cuda/slice/device_slice.hpp"

namespace petacq::gpu::cuda {

/// Where the ordered singles of a slice belong.
struct OrderedOutput {
    Single* singles;
    Single* gammas;
};

/// order() may use a stream of its own, and be called while the slice before is completed and searched.
class Ordering {
  public:
    /// If `memory` is a plan, it cannot be used.
    Ordering(const PipelineOptions& options, Memory& memory);

    /// Orders the ready singles and the ready gammas of a slice by time. Its totals must be on the host. The
    /// slice after the next overwrites them.
    void order(DeviceSlice& slice, const SingleArrays& ready, cudaStream_t stream);
    /// Writes both to `out` in total order, unless too many share a time. Clears the totals of the search,
    /// which note that.
    void complete(DeviceSlice& slice, const OrderedOutput& out, cudaStream_t stream) const;
    /// Whether too many did: complete_long_runs() and another search are needed. The totals of the search
    /// must be on the host.
    [[nodiscard]] static bool has_long_runs(const DeviceSlice& slice) {
        return slice.records.host_totals->long_run != 0;
    }
    /// Does what complete() could not. `scratch`: at least scratch_bytes().
    void complete_long_runs(DeviceSlice& slice, const OrderedOutput& out, void* scratch, cudaStream_t stream);
    [[nodiscard]] std::size_t scratch_bytes() const { return std::max(sort_bytes_, run_bytes_); }

  private:
    void sort_by_time(const SingleArrays& from, const SingleArrays& to, std::uint32_t count,
                      const ConvertTotals& totals, cudaStream_t stream);
    void complete(const SingleArrays& sorted, std::uint32_t count, const DeviceSlice& slice, Single* out,
                  cudaStream_t stream) const;
    void complete_long_runs(const SingleArrays& sorted, std::uint32_t count, const DeviceSlice& slice,
                            Single* out, void* scratch, cudaStream_t stream);

    const SortEngine engine_;
    const std::uint32_t crystals_;
    const std::uint64_t room_;
    const std::size_t sort_bytes_;
    const std::size_t run_bytes_;
    SingleArrays sorted_[2];  // of the slice being searched, and of the one ordered meanwhile
    int which_ = 0;
    void* sort_scratch_ = nullptr;
    RunTotals* run_totals_ = nullptr;
    RunTotals* host_run_totals_ = nullptr;
    Event numbered_;
};

}  // namespace petacq::gpu::cuda
