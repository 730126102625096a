// Which of the decays in a run were found, and at which angles of a scanner that turns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "daemon/coverage/coverage.hpp"
#include "gpu/tick_range.hpp"
#include "tools/petlm/records/scanner_angle.hpp"

namespace petacq::petlm {

/// A time, and the share of the true pairs of the whole scanner in it that was found: neither lost nor missed
/// in dead time.
struct LiveTime {
    gpu::TickRange time;
    double live = 1;
};

/// How many decays happen in a time, in any unit.
using DecaysIn = std::function<double(const gpu::TickRange&)>;

/// The parts of a turn into which the angles of a scanner are sorted.
struct PartsOfTurn {
    std::size_t count;
    /// The angle changes by no more while time is taken as being in one part.
    double most_radians;
    std::function<std::size_t(std::uint64_t time)> at;
};

/// Proportional to the time without a half-life (0). `coverage` outlives it.
DecaysIn decays_of(const daemon::Coverage& coverage, double half_life_s);
/// Of the nuclide that the activity of `coverage` names; without one, proportional to the time.
DecaysIn decays_of(const daemon::Coverage& coverage);

/// [part] of the decays in the time of `coverage` whose pairs were found, the share in it: their sum is 1.
/// What `live` does not tell of a time is the mean of what it tells; within a time of it, all moments are
/// alike. Without any time all parts are alike.
std::vector<double> found_decays(const ScannerAngle& angle, const PartsOfTurn& parts,
                                 const daemon::Coverage& coverage, double half_life_s,
                                 const std::vector<LiveTime>& live);

}  // namespace petacq::petlm
