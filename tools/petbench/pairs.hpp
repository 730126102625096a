// Coincidences with the digits and the compressibility of real ones.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/base/records.hpp"

namespace petacq::bench {

/// Each call continues the sequence. 3 % are delayeds.
class MadePairs {
  public:
    explicit MadePairs(std::uint32_t crystals) : crystals_(crystals) {}

    void fill(gpu::RecordVector<gpu::Coincidence>& records) {
        for (auto& c : records) {
            random_ ^= random_ << 13U;
            random_ ^= random_ >> 7U;
            random_ ^= random_ << 17U;
            c.time = time_ += random_ % 20'000;
            c.dt = static_cast<std::uint32_t>(random_ >> 20U) % 100;
            c.crystal_a = static_cast<std::uint32_t>(random_ >> 32U) % crystals_;
            c.crystal_b = static_cast<std::uint32_t>(random_ >> 8U) % crystals_;
            c.energy_a = 400 + static_cast<float>(random_ >> 40U & 0x3FFFU) * 0.0127F;
            c.energy_b = 400 + static_cast<float>(random_ >> 50U & 0x3FFFU) * 0.0127F;
            c.kind = random_ % 32 == 0 ? gpu::Kind::delayed : gpu::Kind::prompt;
        }
    }

  private:
    const std::uint32_t crystals_;
    std::uint64_t time_ = 1'000'000'000;
    std::uint64_t random_ = 88'172'645'463'325'252;
};

}  // namespace petacq::bench
