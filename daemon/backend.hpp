// Which back-end computes, and the memory it wants batches to lie in.
#pragma once

#include <memory>
#include <string>

#include "config/calibration.hpp"
#include "config/configuration.hpp"
#include "config/scanner.hpp"
#include "gpu/pipeline.hpp"
#include "gpu/randoms.hpp"
#include "net/batch.hpp"

namespace petacq::daemon {

struct Backend {
    std::unique_ptr<gpu::Pipeline> pipeline;
    std::unique_ptr<net::MemorySource> memory;
    std::unique_ptr<gpu::RandomsEstimator> randoms;
    std::string choice;  ///< why this one: "auto: a usable GPU was found"
};

/// By /pipeline/backend: `cpu`, `cuda`, or `auto`, which takes CUDA where a usable GPU is found. Throws
/// config::Error when CUDA was asked for and cannot be had, and what the back-end throws.
Backend make_backend(const config::Configuration& configuration, const config::Scanner& scanner,
                     const config::Calibration& calibration, gpu::Input input = gpu::Input::frames);

}  // namespace petacq::daemon
