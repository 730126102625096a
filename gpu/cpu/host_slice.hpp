// A slice in flight on the CPU: its input, its singles and its result.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/cpu/chunk.hpp"
#include "gpu/cpu/coincidence.hpp"
#include "gpu/cpu/convert.hpp"
#include "gpu/pipeline.hpp"

namespace petacq::gpu {

/// The stages fill it one after the other. It is reused: its buffers keep their memory.
struct HostSlice {
    /// What a part of the frames was converted to.
    struct alignas(64) Part {
        ConvertedFrames converted;
        std::vector<std::unique_ptr<Chunk>> chunks;
        std::vector<std::unique_ptr<Chunk>> gamma_chunks;
    };

    Slice input;
    std::uint64_t number = 0;  ///< in order of submission
    std::uint64_t frames = 0;
    std::uint64_t late_below = 0;  ///< the watermark of the slice before

    // Conversion:
    std::vector<Part> parts;

    // Order:
    std::uint64_t newest = 0;  ///< time of the newest accepted single
    /// In order: what the slice before left undecided, and all below the watermark.
    RecordVector<Single> singles;
    /// Likewise; what the slice before left are the gammas that pairs still to come may use.
    RecordVector<Single> gammas;
    std::uint64_t horizon = 0;  ///< records of this time and later ones are held back
    std::size_t gammas_below_horizon = 0;
    std::size_t gammas_done = 0;  ///< that no pair still to come may use

    // Search, and the result:
    Search search;
    std::size_t first_new_gamma = 0;  ///< those before it were given out with the slice before
    SliceResult result;
};

}  // namespace petacq::gpu
