#include "gpu/cuda/requirements.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>
#include <stdlib.h>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "gpu/cuda/base/memory.hpp"
#include "gpu/cuda/coincidence/search.hpp"
#include "gpu/cuda/convert/converter.hpp"
#include "gpu/cuda/convert/waiting_singles.hpp"
#include "gpu/cuda/cuda_pipeline.hpp"
#include "gpu/cuda/order/ordering.hpp"
#include "gpu/cuda/slice/device_slice.hpp"
#include "gpu/cuda/triples/ordered_gammas.hpp"
#include "gpu/device_memory_error.hpp"

namespace petacq::gpu {

namespace {

constexpr std::uint32_t slice_frames_limit = 1U << 27;
// The source after the last one stands for frames of modules that are not their source's.
constexpr std::size_t max_sources = cuda::SpanRow::max_source - 1;
constexpr std::uint64_t singles_limit = std::uint64_t{1} << 31;
constexpr std::uint32_t multiplicity_limit = 4096;

}  // namespace

namespace cuda {

void check_options(const PipelineOptions& o) {
    check_rules(o.rules);
    check_spectra(o);
    if (o.rules.max_multiplicity > multiplicity_limit) {
        throw std::invalid_argument(fmt::format("max_multiplicity of {}: expected at most {} on CUDA",
                                                o.rules.max_multiplicity, multiplicity_limit));
    }
    if (o.max_slice_frames > slice_frames_limit) {
        throw std::invalid_argument(fmt::format("max_slice_frames of {}: expected at most {} on CUDA",
                                                o.max_slice_frames, slice_frames_limit));
    }
    if (o.sources.size() > max_sources) {
        throw std::invalid_argument(
            fmt::format("{} sources: expected at most {} on CUDA", o.sources.size(), max_sources));
    }
    if (o.max_pending_singles > singles_limit - slice_frames_limit) {
        throw std::invalid_argument(fmt::format("max_pending_singles of {}: expected at most {} on CUDA",
                                                o.max_pending_singles, singles_limit - slice_frames_limit));
    }
}

std::uint32_t current_device() {
    int device = 0;
    check(cudaGetDevice(&device), "cudaGetDevice", "set-up");
    return static_cast<std::uint32_t>(device);
}

bool connect_devices(const std::vector<std::uint32_t>& devices) {
    const auto first = static_cast<int>(devices.front());
    const OnDevice on(first);
    bool all = true;
    for (const std::uint32_t device : devices) {
        const auto other = static_cast<int>(device);
        if (other == first) continue;
        int can = 0;
        check(cudaDeviceCanAccessPeer(&can, first, other), "cudaDeviceCanAccessPeer", "set-up");
        const cudaError_t status =
            can != 0 ? cudaDeviceEnablePeerAccess(other, 0) : cudaErrorPeerAccessUnsupported;
        cudaGetLastError();  // clears the error, so that no later call reports it
        all = all && (status == cudaSuccess || status == cudaErrorPeerAccessAlreadyEnabled);
    }
    return all;
}

void check_memory(const PipelineOptions& options, const OwnedTables& tables) {
    std::vector<std::unique_ptr<Converter>> converters;
    for (std::size_t i = 0; i < options.devices.size(); ++i) {
        converters.push_back(std::make_unique<Converter>(
            options, tables, i == 0 ? room_for_singles(options) : 0, Memory::Purpose::plan));
    }
    Converter& first = *converters.front();
    const WaitingSingles waiting(options, first);
    const Ordering ordering(options, first.memory());
    const CoincidenceSearch search(options, first.memory(), ordering.scratch_bytes());
    const OrderedGammas gammas(options, first.memory());
    for (std::size_t i = 0; i < DeviceSlice::count(options); ++i)
        const DeviceSlice slice(options, converters[i % converters.size()]->memory(), first.memory());
    std::map<std::uint32_t, std::uint64_t> needed;
    for (std::size_t i = 0; i < converters.size(); ++i)
        needed[options.devices[i]] += converters[i]->device_bytes();
    for (const auto& [device, bytes] : needed) {
        const OnDevice on(static_cast<int>(device));
        std::size_t free_bytes = 0;
        std::size_t all_bytes = 0;
        check(cudaMemGetInfo(&free_bytes, &all_bytes), "cudaMemGetInfo", "asking for free memory");
        if (bytes <= free_bytes) continue;
        throw DeviceMemoryError(fmt::format(
            "the CUDA back-end needs {} MiB of GPU memory on device {} for slices of {} frames and {} "
            "pending "
            "singles, and {} MiB are free",
            bytes >> 20, device, options.max_slice_frames, options.max_pending_singles, free_bytes >> 20));
    }
}

}  // namespace cuda

namespace {

/// Of the current device. Clears the error, so that no later call reports it.
std::optional<std::string> unusable_reason(cudaError_t status) {
    if (status == cudaSuccess) return std::nullopt;
    cudaGetLastError();
    return fmt::format("{} ({})", cudaGetErrorString(status), cudaGetErrorName(status));
}

}  // namespace

std::optional<std::string> cuda_unusable_reason(const std::vector<std::uint32_t>& devices) {
    // Load kernels now. Loading them with the first slice that needs them would allocate device memory and
    // stall the device in the middle of a run. CUDA reads this variable when it starts; a value set by the
    // user stands.
    ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);  // NOLINT(concurrency-mt-unsafe): set-up
    int count = 0;
    cudaError_t status = cudaGetDeviceCount(&count);
    if (status == cudaSuccess && count == 0) status = cudaErrorNoDevice;
    if (status == cudaSuccess && devices.empty()) status = cuda::probe_kernels();
    if (const auto reason = unusable_reason(status)) return "CUDA: " + *reason;
    // The first comes last, so that it stays the current one.
    for (auto device = devices.rbegin(); device != devices.rend(); ++device) {
        if (*device >= static_cast<std::uint32_t>(count)) {
            return fmt::format("CUDA: there is no device {}; this host has {}, numbered from 0", *device,
                               count == 1 ? "one" : std::to_string(count));
        }
        status = cudaSetDevice(static_cast<int>(*device));
        if (status == cudaSuccess) status = cuda::probe_kernels();
        if (const auto reason = unusable_reason(status))
            return fmt::format("CUDA, device {}: {}", *device, *reason);
    }
    return std::nullopt;
}

unsigned gpu_count() {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) == cudaSuccess) return static_cast<unsigned>(devices);
    cudaGetLastError();  // clears the error, so that no later call reports it
    return 0;
}

std::string gpu_address(unsigned device) {
    std::array<char, 32> address{};
    cuda::check(
        cudaDeviceGetPCIBusId(address.data(), static_cast<int>(address.size()), static_cast<int>(device)),
        "cudaDeviceGetPCIBusId", "asking where a GPU is");
    return address.data();
}

}  // namespace petacq::gpu
