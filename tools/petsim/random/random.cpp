#include "tools/petsim/random/random.hpp"

#include <cmath>

namespace petacq::sim {

namespace {

constexpr double normal_r = 3.442619855899;       // start of the tail
constexpr double normal_v = 9.91256303526217e-3;  // area of a layer
constexpr double exponential_r = 7.69711747013104972;
constexpr double exponential_v = 3.9496598225815571993e-3;

std::uint64_t split_mix(std::uint64_t& state) {
    state += 0x9E3779B97F4A7C15U;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
}

}  // namespace

const ZigguratTables ziggurat;

ZigguratTables::ZigguratTables() {
    const auto bell = [](double x) { return std::exp(-0.5 * x * x); };
    normal_x[0] = normal_v / bell(normal_r);
    normal_x[1] = normal_r;
    for (unsigned i = 2; i < normal_layers; ++i) {
        normal_x[i] = std::sqrt(-2 * std::log(normal_v / normal_x[i - 1] + bell(normal_x[i - 1])));
    }
    normal_x[normal_layers] = 0;
    for (unsigned i = 0; i < normal_layers; ++i)
        normal_ratio[i] = normal_x[i + 1] / normal_x[i];

    exponential_x[0] = exponential_v / std::exp(-exponential_r);
    exponential_x[1] = exponential_r;
    for (unsigned i = 2; i < exponential_layers; ++i) {
        exponential_x[i] = -std::log(exponential_v / exponential_x[i - 1] + std::exp(-exponential_x[i - 1]));
    }
    exponential_x[exponential_layers] = 0;
    for (unsigned i = 0; i <= exponential_layers; ++i)
        exponential_f[i] = std::exp(-exponential_x[i]);
}

Random::Random(std::uint64_t seed, Purpose purpose, std::uint64_t index) : state_{} {
    std::uint64_t mix = seed;
    mix = split_mix(mix) ^ static_cast<std::uint64_t>(purpose);
    mix = split_mix(mix) ^ index;
    for (auto& word : state_)
        word = split_mix(mix);
}

double Random::normal_edge(double u, unsigned layer) {
    for (;;) {
        if (layer == 0) {
            double x = 0;
            double y = 0;
            do {
                x = exponential() / normal_r;
                y = exponential();
            } while (2 * y < x * x);
            return u < 0 ? -(normal_r + x) : normal_r + x;
        }
        const double x = u * ziggurat.normal_x[layer];
        const double outer = std::exp(-0.5 * (ziggurat.normal_x[layer] * ziggurat.normal_x[layer] - x * x));
        const double inner =
            std::exp(-0.5 * (ziggurat.normal_x[layer + 1] * ziggurat.normal_x[layer + 1] - x * x));
        if (inner + uniform() * (outer - inner) < 1.0) return x;
        const std::uint64_t b = bits();
        layer = static_cast<unsigned>(b & (ZigguratTables::normal_layers - 1));
        u = static_cast<double>(static_cast<std::int64_t>(b) >> 11) * 0x1p-52;
        if (std::abs(u) < ziggurat.normal_ratio[layer]) return u * ziggurat.normal_x[layer];
    }
}

double Random::exponential_edge(double x, unsigned layer) {
    for (double tail = 0;;) {
        if (layer == 0) {
            tail += exponential_r;  // beyond r the distribution repeats itself
        } else {
            const double low = ziggurat.exponential_f[layer];
            const double high = ziggurat.exponential_f[layer + 1];
            if (low + uniform() * (high - low) < std::exp(-x)) return tail + x;
        }
        const std::uint64_t b = bits();
        layer = static_cast<unsigned>(b & (ZigguratTables::exponential_layers - 1));
        x = static_cast<double>(b >> 11) * 0x1p-53 * ziggurat.exponential_x[layer];
        if (x < ziggurat.exponential_x[layer + 1]) return tail + x;
    }
}

}  // namespace petacq::sim
