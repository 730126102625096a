// The gammas below the watermark, in order on the first device, and their way to the host.
#pragma once

#include <cuda_runtime_api.h>

#include "gpu/cuda/base/memory.hpp"
#include "gpu/cuda/slice/device_slice.hpp"

namespace petacq::gpu::cuda {

/// For each slice start(), then, when the gammas are in their place and the totals of conversion are on the
/// host, download(). Without a gamma window it does nothing.
class OrderedGammas {
  public:
    /// If `memory` is a plan, it cannot be used.
    OrderedGammas(const PipelineOptions& options, Memory& memory);

    /// Makes room for the gammas of a slice, which `stream` will write.
    void start(cudaStream_t stream);
    /// Where they belong, in total order.
    [[nodiscard]] Single* gammas() const { return gammas_[which_]; }
    /// Starts copying them to the slice.
    void download(DeviceSlice& slice, cudaStream_t down);

  private:
    Single* gammas_[2] = {nullptr, nullptr};
    Event read_[2];  // they are not to be overwritten before
    int which_ = 0;  // those of the slice started last
};

}  // namespace petacq::gpu::cuda
