// Shared by the tests of photons that are followed.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "tests/tools/petsim/common.hpp"

namespace petacq::test {

/// The hits of each annihilation or decay.
using Pairs = std::map<std::uint64_t, std::vector<sim::TruthRecord>>;

inline Pairs by_annihilation(const Recorded& run) {
    Pairs out;
    for (const auto& t : run.truth) {
        if (t.annihilation != 0) out[t.annihilation].push_back(t);
    }
    return out;
}

/// A point at the centre, and a detector without losses and blur.
inline sim::Options ideal(double mbq, double duration_s,
                          sim::CrystalModel model = sim::CrystalModel::surface) {
    auto o = point_options(mbq, duration_s);
    o.physics.efficiency = 1;
    o.physics.scatter = 0;
    o.physics.energy_resolution = 0;
    o.physics.time_resolution_ps = 0;
    o.crystals.model = model;
    return o;
}

inline sim::ScatteringObject water(double radius, double length = 200) {
    return {{{0, 0, 0}, radius, length}, sim::water_per_cm};
}

}  // namespace petacq::test
