// The input of the CUDA pipeline suite, and the copy rates of the GPU's memory and bus.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "gpu/cuda/base/pinned_memory.hpp"
#include "gpu/pipeline.hpp"

namespace petacq::bench {

/// Frames as received: spans with a header before each, in pinned memory. Blocks of the same frames follow
/// each other in time; in each, the spans lie side by side in an area for each receiver.
struct CudaInput {
    std::unique_ptr<net::MemorySource> memory = gpu::make_pinned_memory();
    std::byte* data = nullptr;
    std::vector<gpu::FrameSpan> spans;
    std::vector<std::uint64_t> watermarks;  ///< [span]
    std::size_t frames = 0;                 ///< whole blocks of 1.25 Mi
    std::size_t bytes = 0;
};

/// At least `frames` frames at `rate` singles per second of detector time, of which this fraction are gammas.
CudaInput make_cuda_input(const config::Scanner& scanner, double rate, double gammas, std::size_t frames,
                          std::size_t receivers);

/// Replaces the raw time of a frame.
void set_time(std::byte* frame, std::uint64_t time);

double milliseconds_between(cudaEvent_t from, cudaEvent_t to);

/// Bytes per second. For a device copy, the bytes read, which equal the bytes written.
struct CopyRates {
    double up = 0;          ///< host to device, in pieces of up to 16 Mi frames
    double up_small = 0;    ///< the same in pieces of 1 Mi frames
    double up_batches = 0;  ///< in pieces of 2 MiB, the size of a batch
    double up_two = 0;      ///< in pieces of 1 Mi frames, on two streams in turn
    double up_all = 0;      ///< all of the input once
    double device = 0;      ///< from device memory to device memory
};
CopyRates measure_copies(const CudaInput& input, int repeat);

}  // namespace petacq::bench
