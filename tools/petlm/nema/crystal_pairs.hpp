// All pairs of crystals, for sums over what is expected of them.
#pragma once

#include <cstdint>
#include <random>

namespace petacq::nema {

/// Calls use(a, b) for all pairs of crystals or, of some millions and more, for a fair sample that is always
/// the same.
template <class Use>
void for_each_crystal_pair(std::uint32_t crystals, const Use& use) {
    constexpr std::uint64_t max_pairs = 4'000'000;
    if (std::uint64_t{crystals} * (crystals - 1) / 2 <= max_pairs) {
        for (std::uint32_t a = 0; a < crystals; ++a) {
            for (std::uint32_t b = a + 1; b < crystals; ++b)
                use(a, b);
        }
        return;
    }
    std::mt19937_64 random(1);
    for (std::uint64_t i = 0; i < max_pairs; ++i) {
        const std::uint64_t bits = random();
        const auto draw = [crystals](std::uint64_t part) {
            return static_cast<std::uint32_t>(part * crystals >> 32U);
        };
        const std::uint32_t a = draw(bits >> 32U);
        const std::uint32_t b = draw(bits & 0xFFFFFFFFU);
        if (a != b) use(a, b);
    }
}

}  // namespace petacq::nema
