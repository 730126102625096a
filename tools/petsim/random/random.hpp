// Random numbers that are the same on every compiler: xoshiro256++ with ziggurat normals and exponentials.
// Each purpose and each piece of work gets a generator of its own from (seed, purpose, index), so that
// results do not depend on who draws first.
#pragma once

#include <array>
#include <cstdint>

namespace petacq::sim {

/// Layers of the ziggurats; built once at program start.
struct ZigguratTables {
    static constexpr unsigned normal_layers = 128;
    static constexpr unsigned exponential_layers = 256;
    std::array<double, normal_layers + 1> normal_x;
    std::array<double, normal_layers> normal_ratio;
    std::array<double, exponential_layers + 1> exponential_x;
    std::array<double, exponential_layers + 1> exponential_f;
    ZigguratTables();
};
extern const ZigguratTables ziggurat;

/// The purpose of a generator: part of its seed.
enum class Purpose : std::uint32_t {
    events = 1,
    stream = 2,
    calibration = 3,
    cycle = 4,
    detector = 5,
    check = 6
};

class Random {
  public:
    Random(std::uint64_t seed, Purpose purpose, std::uint64_t index);

    std::uint64_t bits() {
        const std::uint64_t result = rotate(state_[0] + state_[3], 23) + state_[0];
        const std::uint64_t t = state_[1] << 17;
        state_[2] ^= state_[0];
        state_[3] ^= state_[1];
        state_[1] ^= state_[2];
        state_[0] ^= state_[3];
        state_[2] ^= t;
        state_[3] = rotate(state_[3], 45);
        return result;
    }
    /// In [0, 1), 53 bits.
    double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
    /// In [-1, 1).
    double symmetric() { return static_cast<double>(static_cast<std::int64_t>(bits()) >> 11) * 0x1p-52; }
    /// In [0, n), n > 0. The bias is below n / 2^32.
    std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(((bits() >> 32) * n) >> 32); }
    bool chance(double probability) { return uniform() < probability; }

    /// Mean 0, variance 1.
    double normal() {
        const std::uint64_t b = bits();
        const auto layer = static_cast<unsigned>(b & (ZigguratTables::normal_layers - 1));
        const double u = static_cast<double>(static_cast<std::int64_t>(b) >> 11) * 0x1p-52;
        if ((u < 0 ? -u : u) < ziggurat.normal_ratio[layer]) return u * ziggurat.normal_x[layer];
        return normal_edge(u, layer);
    }
    /// Mean 1.
    double exponential() {
        const std::uint64_t b = bits();
        const auto layer = static_cast<unsigned>(b & (ZigguratTables::exponential_layers - 1));
        const double x = static_cast<double>(b >> 11) * 0x1p-53 * ziggurat.exponential_x[layer];
        if (x < ziggurat.exponential_x[layer + 1]) return x;
        return exponential_edge(x, layer);
    }

  private:
    static std::uint64_t rotate(std::uint64_t v, int n) { return (v << n) | (v >> (64 - n)); }
    double normal_edge(double u, unsigned layer);
    double exponential_edge(double x, unsigned layer);

    std::array<std::uint64_t, 4> state_;
};

}  // namespace petacq::sim
