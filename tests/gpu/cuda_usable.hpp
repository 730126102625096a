// Tests that need CUDA are skipped where it cannot be used.
#pragma once

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

}  // namespace petacq::test
