// Singles of annihilations in any scanner, and which of them belong together.
#pragma once

#include <cstdint>
#include <vector>

#include "config/geometry.hpp"
#include "gpu/base/records.hpp"
#include "tests/gpu/random.hpp"

namespace petacq::test {

struct Annihilations {
    gpu::RecordVector<gpu::Single> singles;  ///< in the order of their times; each has an energy of its own
    std::vector<std::uint32_t> of_energy;    ///< [energy] the annihilation of the single that has it
    std::uint64_t ticks = 0;

    [[nodiscard]] bool random(const gpu::Coincidence& pair) const {
        return of_energy[static_cast<std::size_t>(pair.energy_a)] !=
               of_energy[static_cast<std::size_t>(pair.energy_b)];
    }
};

/// Of a cylinder on the axis, radius and half of its length in mm, off the axis by half of its radius. Of
/// each annihilation one crystal or two find a photon. The crystals differ in how well they do. `scattered`:
/// the part of the pairs that have any two crystals.
Annihilations annihilations(const config::PairGeometry& crystals, double radius_mm, double half_length_mm,
                            std::size_t count, double mean_gap, double scattered, Rng& rng);

}  // namespace petacq::test
