// Singles of annihilations in any scanner, and which of them belong together.
#pragma once

#include <cstdint>
#include <vector>

#include "config/scanner/geometry.hpp"
#include "gpu/base/records.hpp"
#include "tests/gpu/base/random.hpp"

namespace petacq::test {

struct Annihilations {
    gpu::RecordVector<gpu::Single> singles;  ///< in the order of their times; each has an energy of its own
    std::vector<std::uint32_t> of_energy;    ///< the annihilations of the singles, in the order of energy
    std::uint64_t ticks = 0;

    static constexpr float lowest_keV = 300;
    static constexpr float step_keV = 1.0F / 1024;

    /// The number of the annihilation whose single has this energy.
    [[nodiscard]] std::uint32_t annihilation(float energy) const {
        return of_energy.at(static_cast<std::size_t>((energy - lowest_keV) / step_keV));
    }
    [[nodiscard]] bool random(const gpu::Coincidence& pair) const {
        return annihilation(pair.energy_a) != annihilation(pair.energy_b);
    }
};

/// Whether the line between two crystals meets a cylinder that lies between them, off the axis by half of its
/// radius. In micrometres.
bool passes(const config::PairGeometry::Crystal& a, const config::PairGeometry::Crystal& b, double radius,
            double half_length);

/// Of such a cylinder, radius and half of its length in mm. Of each annihilation one crystal or two find a
/// photon. The crystals differ in how well they do. `scattered`: the part of the pairs that have any two
/// crystals.
Annihilations annihilations(const config::PairGeometry& crystals, double radius_mm, double half_length_mm,
                            std::size_t count, double mean_gap, double scattered, Rng& rng);

}  // namespace petacq::test
