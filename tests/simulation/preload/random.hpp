// Random numbers that are the same on every machine (splitmix64).
#pragma once

#include <cstdint>

namespace petacq::simulation {

class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed * 2 + 1) {}

    /// Uniform in 0..below-1.
    std::uint64_t below(std::uint64_t below) {
        state_ += 0x9E3779B97F4A7C15U;
        std::uint64_t v = state_;
        v = (v ^ (v >> 30U)) * 0xBF58476D1CE4E5B9U;
        v = (v ^ (v >> 27U)) * 0x94D049BB133111EBU;
        v ^= v >> 31U;
        return v % below;
    }
    /// With probability 1/n; never if n is 0.
    bool one_in(std::uint64_t n) { return n != 0 && below(n) == 0; }

  private:
    std::uint64_t state_;
};

}  // namespace petacq::simulation
