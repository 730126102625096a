// A stretch of detector time.
#pragma once

#include <cstdint>

namespace petacq::gpu {

/// Ticks, the end excluded.
struct TickRange {
    std::uint64_t start = 0;
    std::uint64_t end = 0;

    [[nodiscard]] std::uint64_t ticks() const { return end - start; }
    bool operator==(const TickRange&) const = default;
};

}  // namespace petacq::gpu
