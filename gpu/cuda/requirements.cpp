#include "gpu/cuda/requirements.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>
#include <stdlib.h>

#include <array>
#include <optional>
#include <stdexcept>
#include <string>

#include "gpu/cuda/cuda_pipeline.hpp"
#include "gpu/cuda/memory.hpp"
#include "gpu/cuda/slot.hpp"
#include "gpu/cuda/stages.hpp"
#include "gpu/device_memory_error.hpp"

namespace petacq::gpu {

namespace {

constexpr std::uint32_t most_slice_frames = 1U << 27;
// The source after the last one stands for frames of modules that are not their source's.
constexpr std::size_t most_sources = cuda::SpanRow::most_source - 1;
constexpr std::uint64_t most_singles = std::uint64_t{1} << 31;
constexpr std::uint32_t most_multiplicity = 4096;

}  // namespace

namespace cuda {

void check_options(const PipelineOptions& o) {
    check_rules(o.rules);
    check_spectra(o);
    if (o.rules.max_multiplicity > most_multiplicity) {
        throw std::invalid_argument(fmt::format("max_multiplicity of {}: expected at most {} on CUDA",
                                                o.rules.max_multiplicity, most_multiplicity));
    }
    if (o.max_slice_frames > most_slice_frames) {
        throw std::invalid_argument(fmt::format("max_slice_frames of {}: expected at most {} on CUDA",
                                                o.max_slice_frames, most_slice_frames));
    }
    if (o.sources.size() > most_sources) {
        throw std::invalid_argument(
            fmt::format("{} sources: expected at most {} on CUDA", o.sources.size(), most_sources));
    }
    if (o.max_pending_singles > most_singles - most_slice_frames) {
        throw std::invalid_argument(fmt::format("max_pending_singles of {}: expected at most {} on CUDA",
                                                o.max_pending_singles, most_singles - most_slice_frames));
    }
}

void check_memory(const PipelineOptions& options, const OwnedTables& tables) {
    Memory plan(Memory::Purpose::plan);
    std::uint64_t table_bytes = 0;
    {
        const Stages stages(options, tables, plan);
        table_bytes = stages.table_bytes();
        for (std::size_t i = 0; i < Slot::count(options); ++i)
            const Slot slot(options, plan);
    }
    std::size_t free_bytes = 0;
    std::size_t all_bytes = 0;
    check(cudaMemGetInfo(&free_bytes, &all_bytes), "cudaMemGetInfo", "asking for free memory");
    const std::uint64_t device_bytes = plan.device_bytes() + table_bytes;
    if (device_bytes > free_bytes) {
        throw DeviceMemoryError(fmt::format(
            "the CUDA back-end needs {} MiB of GPU memory for slices of {} frames and {} pending "
            "singles, and {} MiB are free",
            device_bytes >> 20, options.max_slice_frames, options.max_pending_singles, free_bytes >> 20));
    }
}

}  // namespace cuda

std::optional<std::string> cuda_unusable_reason() {
    // Load kernels now. Loading them with the first slice that needs them would allocate device memory and
    // stall the device in the middle of a run. CUDA reads this variable when it starts; a value set by the
    // user stands.
    ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);  // NOLINT(concurrency-mt-unsafe): set-up
    int devices = 0;
    cudaError_t status = cudaGetDeviceCount(&devices);
    if (status == cudaSuccess && devices == 0) status = cudaErrorNoDevice;
    if (status == cudaSuccess) status = cuda::probe_kernels();
    if (status == cudaSuccess) return std::nullopt;
    cudaGetLastError();  // clears the error, so that no later call reports it
    return fmt::format("CUDA: {} ({})", cudaGetErrorString(status), cudaGetErrorName(status));
}

unsigned gpu_count() {
    int devices = 0;
    cuda::check(cudaGetDeviceCount(&devices), "cudaGetDeviceCount", "counting GPUs");
    return static_cast<unsigned>(devices);
}

std::string gpu_address(unsigned device) {
    std::array<char, 32> address{};
    cuda::check(
        cudaDeviceGetPCIBusId(address.data(), static_cast<int>(address.size()), static_cast<int>(device)),
        "cudaDeviceGetPCIBusId", "asking where a GPU is");
    return address.data();
}

void use_gpu(unsigned device) {
    cuda::check(cudaSetDevice(static_cast<int>(device)), "cudaSetDevice", "choosing a GPU");
}

}  // namespace petacq::gpu
