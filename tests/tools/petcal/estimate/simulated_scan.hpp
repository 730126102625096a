// Coincidences of a simulated scan by the true detector of petsim: crystals by the positions of the hits, as
// the best calibration assigns them, and times without any calibration.
#pragma once

#include <cstdint>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "tools/petsim/detector/make_detector.hpp"
#include "tools/petsim/simulation/base/options.hpp"

namespace petacq::test {

struct SimulatedPair {
    std::uint32_t a;
    std::uint32_t b;
    float ticks;  ///< raw time of b less that of a
    bool random;
    bool scattered = false;  ///< in the object, where one is followed; at least one of both photons
};

/// An even cylinder at the centre. `efficiency`: of photons that enter a crystal.
sim::Options cylinder_scan(double radius_mm, double length_mm, double mbq, double duration_s,
                           double efficiency);

/// Pairs of singles of 350 to 650 keV, where exactly two lie within `window` ticks of raw time.
std::vector<SimulatedPair> simulate_pairs(const config::Scanner& scanner, const sim::Options& options,
                                          const sim::Detector& detector, std::uint64_t window);

}  // namespace petacq::test
