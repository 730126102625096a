// The histograms of the collected slices that a device has converted.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "gpu/cuda/base/memory.hpp"
#include "gpu/cuda/convert/convert_kernels.hpp"
#include "gpu/histograms.hpp"

namespace petacq::gpu::cuda {

class HistogramTotals {
  public:
    HistogramTotals(const HistogramSizes& sizes, Memory& memory)
        : sizes_(sizes),
          totals_(memory.zeros<std::uint64_t>(sizes.total())),
          host_totals_(memory.pinned<std::uint64_t>(sizes.total())) {}

    void add(const SliceHistograms& slice, cudaStream_t stream) const {
        launch_fold(slice, sizes_, totals_, stream);
    }
    /// Waits for the stream.
    void copy(SinglesHistograms& out, cudaStream_t stream) const {
        check(cudaMemcpyAsync(host_totals_, totals_, bytes(), cudaMemcpyDeviceToHost, stream),
              "cudaMemcpyAsync", "copying histograms");
        check(cudaStreamSynchronize(stream), "cudaStreamSynchronize", "copying histograms");
        const std::uint64_t* from = host_totals_;
        const auto next = [&](auto& to, std::uint32_t count) {
            to.assign(from, from + count);
            from += count;
        };
        next(out.per_crystal, sizes_.crystals);
        next(out.energy, sizes_.energies);
        next(out.temperature_count, sizes_.units);
        next(out.temperature_sum_16ths, sizes_.units);
    }

  private:
    [[nodiscard]] std::size_t bytes() const { return sizes_.total() * sizeof(std::uint64_t); }

    HistogramSizes sizes_;
    std::uint64_t* totals_;
    std::uint64_t* host_totals_;
};

}  // namespace petacq::gpu::cuda
