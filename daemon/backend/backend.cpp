#include "daemon/backend/backend.hpp"

#include <optional>
#include <string>
#include <vector>

#include "config/base/error.hpp"
#include "daemon/backend/pipeline_options.hpp"
#ifdef PETACQ_HAVE_CUDA
#include "gpu/cuda/base/pinned_memory.hpp"
#include "gpu/cuda/cuda_pipeline.hpp"
#include "gpu/device_memory_error.hpp"
#endif

namespace petacq::daemon {

namespace {

/// Throws config::Error if there are GPUs, but not all of the devices of the configuration can be used.
std::optional<std::string> why_not_cuda([[maybe_unused]] const config::Configuration& configuration) {
#ifdef PETACQ_HAVE_CUDA
    // None: the one that CUDA gives.
    const std::vector<std::uint32_t> devices =
        configuration.pipeline.devices.value_or(std::vector<std::uint32_t>());
    std::optional<std::string> reason = gpu::cuda_unusable_reason(devices);
    if (reason && !devices.empty() && gpu::gpu_count() > 0)
        throw config::Error("/pipeline/devices: expected numbers of usable GPUs; " + *reason);
    return reason;
#else
    return "this program is built without it";
#endif
}

[[noreturn]] void refuse_cuda(const std::string& reason) {
    throw config::Error("/pipeline/backend: 'cuda' cannot be used: " + reason +
                        "; expected a usable GPU with that much memory, or 'auto' or 'cpu'");
}

}  // namespace

std::optional<std::string> check_devices(const config::Configuration& configuration) {
    const config::Pipeline& pipeline = configuration.pipeline;
    if (!pipeline.devices) return std::nullopt;
    std::optional<std::string> unusable = why_not_cuda(configuration);
    if (unusable && pipeline.backend == config::Backend::cuda) refuse_cuda(*unusable);
    return unusable;
}

Backend make_backend(const config::Configuration& configuration, const config::Scanner& scanner,
                     const config::Calibration& calibration, std::size_t producers, gpu::Input input,
                     [[maybe_unused]] const net::Cores& near_gpu) {
    const config::Backend wanted = configuration.pipeline.backend;
    gpu::PipelineOptions options = pipeline_options(configuration, scanner, producers);
    options.input = input;
    Backend backend;
    std::string reason = "asked for";
    if (wanted != config::Backend::cpu) {
        std::optional<std::string> unusable = why_not_cuda(configuration);
#ifdef PETACQ_HAVE_CUDA
        if (!unusable) {
            try {
                const net::OnCores placed(near_gpu);
                backend.pipeline = gpu::make_cuda_pipeline(options, calibration);
                backend.memory = gpu::make_pinned_memory(configuration.receive.huge_pages);
                backend.on_gpu = true;
                backend.choice = wanted == config::Backend::cuda ? reason : "auto: a usable GPU was found";
                return backend;
            } catch (const gpu::DeviceMemoryError& e) {
                unusable = std::string(e.what()) + " (lower slice_frames or max_pending_singles)";
            }
        }
#endif
        if (wanted == config::Backend::cuda) refuse_cuda(unusable.value_or(""));
        reason = "auto: CUDA cannot be used: " + unusable.value_or("");
    }
    net::HostMemoryOptions memory;
    memory.huge_pages = configuration.receive.huge_pages;
    memory.lock = configuration.receive.lock_memory;
    backend.pipeline = gpu::make_cpu_pipeline(options, calibration);
    backend.memory = net::make_host_memory(memory);
    backend.choice = reason;
    return backend;
}

unsigned usable_gpus() {
#ifdef PETACQ_HAVE_CUDA
    return why_not_cuda({}) ? 0 : gpu::gpu_count();
#else
    return 0;
#endif
}

std::string gpu_address([[maybe_unused]] const config::Pipeline& pipeline) {
#ifdef PETACQ_HAVE_CUDA
    const std::uint32_t first = pipeline.devices ? pipeline.devices->front() : 0;
    if (pipeline.backend != config::Backend::cpu && first < gpu::gpu_count()) return gpu::gpu_address(first);
#endif
    return "";
}

}  // namespace petacq::daemon
