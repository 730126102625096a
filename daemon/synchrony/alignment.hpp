// By how much the times of each module are late, such that as many pairs as possible are simultaneous.
//
// It starts with all modules in step and shifts those that see a peak elsewhere: each one by its own peak,
// or all that see the same one together. A shift that brings no more simultaneous pairs is taken back. So
// one board, several with different delays, and half of all boards are found alike.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "daemon/synchrony/time_differences.hpp"

namespace petacq::daemon {

struct AlignedModule {
    std::uint64_t singles = 0;
    double late = 0;   ///< ticks, against the others of its group
    double error = 0;  ///< ticks, standard deviation
    double pairs = 0;  ///< simultaneous ones with the others, without randoms; 0: none are certain
    std::uint32_t group = 0;
};

struct Alignment {
    /// Modules of one group have simultaneous singles. Those of different groups have none that could be told
    /// from chance.
    std::vector<AlignedModule> modules;
    std::vector<double> pairs;    ///< [a * modules + b] simultaneous ones, randoms included
    std::vector<double> randoms;  ///< the same pairs, as expected by chance

    /// Simultaneous pairs of a module with a group, randoms included, and the randoms.
    struct PairCount {
        double all = 0;
        double randoms = 0;
    };
    [[nodiscard]] PairCount with_group(std::uint32_t module, std::uint32_t group) const;
};

/// REQUIRES: `hits` are in the order of time, their modules are below `modules`. `min_shift`: ticks; by
/// less no module is shifted, only measured.
Alignment align(std::span<const TimedSingle> hits, std::uint32_t modules, const SearchScale& scale,
                double min_shift);

/// A lag at which modules far out of step have their partners.
struct FarPeak {
    Peak peak;
    std::vector<std::uint32_t> modules;  ///< those that have it
};

/// Peaks of the differences between some modules and those of a group, less the delays known by now. Looks at
/// about `max_pairs` pairs.
std::vector<FarPeak> find_far(std::span<const TimedSingle> hits, const Alignment& alignment,
                              const std::vector<bool>& modules, std::uint32_t group, const SearchScale& scale,
                              std::uint64_t max_pairs);

}  // namespace petacq::daemon
