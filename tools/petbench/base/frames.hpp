// A synthetic stream of frames for the pipeline benchmarks: many sources, each in its own order, packed into
// datagrams and interleaved as they would arrive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "config/calibration.hpp"
#include "config/scanner/scanner.hpp"
#include "gpu/pipeline.hpp"

namespace petacq::bench {

inline constexpr double gamma_keV = 1157;  ///< of Sc-44

struct StreamOptions {
    std::size_t frames = 1 << 20;
    double singles_per_s = 50e6;
    std::uint32_t frames_per_datagram = 91;  ///< 1472 bytes with the header
    double pair_fraction = 0.2;              ///< of the frames that come in pairs of one time
    double gamma_fraction = 0;  ///< of the frames; with the energy of Sc-44, after an annihilation
    std::uint64_t seed = 1;
};

struct Stream {
    std::vector<std::byte> bytes;  ///< 16-byte aligned by the allocator; frames back to back
    std::vector<gpu::FrameSpan> spans;
    std::vector<std::uint64_t> watermarks;  ///< [span] no later span holds an earlier time
};

/// The rules for the gammas of a stream, which come up to `window_ns` before and after a pair.
gpu::GammaRules gamma_rules(const config::Scanner& scanner, double window_ns);

/// Photopeak and scatter energies, random positions; times are a Poisson process at the given rate.
Stream make_stream(const config::Scanner& scanner, const StreamOptions& options);

}  // namespace petacq::bench
