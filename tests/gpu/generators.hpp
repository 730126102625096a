// Families of input. The family and the seed alone determine a case.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/pipeline.hpp"
#include "tests/gpu/base/random.hpp"
#include "tests/gpu/setups.hpp"

namespace petacq::test {

enum class Family : std::uint8_t {
    tiny,          ///< none to four singles
    poisson_0_01,  ///< events per window
    poisson_0_1,
    poisson_1,
    poisson_10,
    equal_times,
    fixed_gaps,     ///< all gaps tau, tau + 1, tau / 2 + 1 or tau / 2
    chains,         ///< gaps of at most tau, seldom broken
    bursts,         ///< clusters with empty time between them
    ties,           ///< few times, few crystals, few energies; identical singles
    near_zero,      ///< times from 0
    near_max,       ///< times up to 2^64 - 1
    huge_gaps,      ///< up to 2^40 ticks apart
    winner_ties,    ///< groups whose pairs have equal energy sums
    refused_pairs,  ///< same crystal and bad geometry are frequent
    delay_edges,    ///< partners at the edges of the delayed window
    mixed,          ///< stretches of the others, one after the other
};
const std::vector<Family>& all_families();
const char* name_of(Family family);

/// A stretch of detector time: raw times outside are time jumps. low > high: every frame is.
struct SourceWindow {
    std::uint64_t low = 0;
    std::uint64_t high = UINT64_MAX;
};

struct InputFrame {
    RawFrame raw;
    std::uint8_t source = 0;
};

/// Frames in about the order of their time, with everything needed to process them.
struct Case {
    Family family = Family::tiny;
    std::uint64_t seed = 0;
    Setup setup;
    gpu::PipelineOptions options;       ///< the caller sets mode, policy, threads and bounds
    std::vector<SourceWindow> sources;  ///< options.sources has the modules of each, or is empty
    std::vector<InputFrame> frames;
};

/// Of every three seeds in a row, one has a scanner of the long form.
/// `frames`: approximate number; 0: a random number, small enough for thousands of cases.
Case make_case(Family family, std::uint64_t seed, std::size_t frames = 0);

/// Gives the case a gamma window beside its energy window, above or below it, adjoining or not, and rules for
/// gammas. Their edges often meet those of the other windows.
void add_gammas(Case& c, Rng& rng);

}  // namespace petacq::test
