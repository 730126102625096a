// Short forms of what is done on a stream.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "gpu/cuda/base/check.hpp"

namespace petacq::gpu::cuda {

inline void order_after(cudaEvent_t event, cudaStream_t stream) {
    check(cudaStreamWaitEvent(stream, event, 0), "cudaStreamWaitEvent", "ordering the streams");
}

inline void clear(void* memory, std::size_t bytes, cudaStream_t stream) {
    check(cudaMemsetAsync(memory, 0, bytes, stream), "cudaMemsetAsync", "clearing memory of the device");
}

template <class T>
void to_host(T* host, const T* device, std::size_t count, cudaStream_t stream) {
    if (count == 0) return;
    check(cudaMemcpyAsync(host, device, count * sizeof(T), cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync",
          "copying results to the host");
}

}  // namespace petacq::gpu::cuda
