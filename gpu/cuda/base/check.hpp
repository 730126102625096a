// Turns CUDA error codes into exceptions.
#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace petacq::gpu::cuda {

/// Throws std::runtime_error that names the call, the current device, the error and the operation in
/// progress.
inline void check(cudaError_t status, const char* call, const std::string& doing) {
    if (status == cudaSuccess) return;
    int device = 0;
    const bool known = cudaGetDevice(&device) == cudaSuccess;
    throw std::runtime_error("CUDA: " + std::string(call) + " failed" +
                             (known ? " on device " + std::to_string(device) : "") + " while " + doing +
                             ": " + cudaGetErrorString(status) + " (" + cudaGetErrorName(status) + ")");
}
inline void check(cudaError_t status, const char* call, const char* doing) {
    if (status != cudaSuccess) check(status, call, std::string(doing));
}

}  // namespace petacq::gpu::cuda
