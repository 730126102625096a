// Portable random numbers: a seed makes the same case on every machine.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace petacq::test {

class Rng {
  public:
    explicit Rng(std::uint64_t seed) : engine_(seed) {}

    /// Any 64 bits.
    std::uint64_t bits() { return engine_(); }
    /// low..high, both inclusive.
    template <typename T>
    T between(T low, T high) {
        const std::uint64_t span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
        if (span == UINT64_MAX) return static_cast<T>(bits());
        return static_cast<T>(static_cast<std::uint64_t>(low) + bits() % (span + 1));
    }
    /// 0..count - 1.
    std::size_t index(std::size_t count) { return static_cast<std::size_t>(bits() % count); }
    /// (0, 1].
    double unit() { return (static_cast<double>(bits() >> 11) + 1) * 0x1p-53; }
    bool chance(double probability) { return unit() <= probability; }
    double exponential(double mean) { return -mean * std::log(unit()); }
    template <typename T>
    const T& pick(const std::vector<T>& values) {
        return values[index(values.size())];
    }

  private:
    std::mt19937_64 engine_;
};

}  // namespace petacq::test
