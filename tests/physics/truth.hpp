// Singles of the simulator with their annihilations, and the pairs that the pipeline finds among them.
#pragma once

#include <cstdint>
#include <vector>

#include "config/calibration.hpp"
#include "config/scanner/scanner.hpp"
#include "gpu/pipeline.hpp"
#include "gpu/second_cuts.hpp"
#include "tools/petsim/simulation/base/options.hpp"

namespace petacq::test {

/// What a perfect detector hands over, in order.
struct TrueSingles {
    config::Scanner scanner;
    config::Calibration calibration;
    std::vector<gpu::Single> singles;
    std::vector<std::uint64_t> annihilations;  ///< [single]; 0: none
    std::uint64_t begin = 0;                   ///< ticks
    std::uint64_t end = 0;

    [[nodiscard]] double per_second() const;
};

/// Singles from `lower_keV` to 650 keV.
TrueSingles simulate_singles(const config::Scanner& scanner, const sim::Options& options,
                             float lower_keV = 350);  // NOLINT(readability-identifier-naming)

/// What the pipeline finds in one second.
struct FoundSecond {
    gpu::TickRange range;
    gpu::IntervalSums sums;
};
struct Found {
    std::vector<FoundSecond> seconds;
    std::vector<gpu::Coincidence> pairs;
};
Found find_pairs(const TrueSingles& truth, const gpu::CoincidenceRules& rules);

/// [pair] whether the two singles of a prompt are of different annihilations, or of none; false for delayeds.
std::vector<bool> is_random(const TrueSingles& truth, const std::vector<gpu::Coincidence>& pairs);

}  // namespace petacq::test
