// Tests that need CUDA are skipped where it cannot be used.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/cuda/cuda_pipeline.hpp"
#include "tests/support/catch.hpp"

namespace petacq::test {

/// Whether CUDA can be used here; warns if it cannot.
inline bool cuda_usable() {
    if (const auto reason = gpu::cuda_unusable_reason()) {
        WARN("skipped: " << *reason);
        return false;
    }
    return true;
}

/// The first two devices; on a host with one, that one twice. REQUIRES: CUDA can be used.
inline std::vector<std::uint32_t> two_devices() {
    return {0, gpu::gpu_count() > 1 ? 1U : 0U};
}

}  // namespace petacq::test
