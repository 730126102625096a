// The back-end that computes, with the memory in which it wants batches to lie.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "config/calibration.hpp"
#include "config/configuration.hpp"
#include "config/scanner/scanner.hpp"
#include "gpu/pipeline.hpp"
#include "net/base/cores.hpp"
#include "net/batch.hpp"

namespace petacq::daemon {

struct Backend {
    std::unique_ptr<gpu::Pipeline> pipeline;
    std::unique_ptr<net::MemorySource> memory;
    std::string choice;  ///< why this one was chosen: "auto: a usable GPU was found"
    bool on_gpu = false;
};

/// Why /pipeline/devices will not be used; absent if they are, or none are listed: then it starts no GPU.
/// Throws config::Error if this host has GPUs, but cannot use all of them, or none at all with the backend
/// `cuda`.
std::optional<std::string> check_devices(const config::Configuration& configuration);

/// Makes the back-end of /pipeline/backend: `cpu`, `cuda`, or `auto`, which takes CUDA if there is a usable
/// GPU. `producers` as for pipeline_options(). Throws config::Error if `cuda` is requested and cannot be
/// used, what check_devices() throws, and what the back-end throws. `near_gpu`: where the threads of a
/// pipeline on the GPU run.
Backend make_backend(const config::Configuration& configuration, const config::Scanner& scanner,
                     const config::Calibration& calibration, std::size_t producers,
                     gpu::Input input = gpu::Input::frames, const net::Cores& near_gpu = {});

/// How many GPUs this program can use.
unsigned usable_gpus();
/// The PCI address of the GPU at which the results of the pipeline would arrive; "": none.
std::string gpu_address(const config::Pipeline& pipeline);

}  // namespace petacq::daemon
