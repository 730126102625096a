// Singles and coincidences: the two kinds of records that leave the pipeline. Both are plain structs,
// little-endian in memory, and list-mode files store them unchanged.
#pragma once

#include <cstdint>

namespace petacq::gpu {

/// A converted hit.
struct Single {
    std::uint64_t time = 0;  ///< ticks
    std::uint32_t crystal = 0;
    float energy = 0;  ///< keV
};
static_assert(sizeof(Single) == 16);

enum class Kind : std::uint32_t { prompt = 0, delayed = 1 };

/// A pair of singles, a before b in the order (time, crystal, energy).
struct Coincidence {
    std::uint64_t time = 0;  ///< ticks, of a
    std::uint32_t dt = 0;    ///< ticks, time of b minus time of a; for a delayed, also minus the delay
    std::uint32_t crystal_a = 0;
    std::uint32_t crystal_b = 0;
    float energy_a = 0;  ///< keV
    float energy_b = 0;
    Kind kind = Kind::prompt;
};
static_assert(sizeof(Coincidence) == 32);

}  // namespace petacq::gpu
