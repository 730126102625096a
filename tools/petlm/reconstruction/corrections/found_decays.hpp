// At which angles a scanner that turns found the pairs of the decays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "daemon/coverage/coverage.hpp"
#include "tools/petlm/reconstruction/corrections/live_time.hpp"
#include "tools/petlm/records/scanner_angle.hpp"

namespace petacq::petlm {

/// The parts of a turn into which the angles of a scanner are sorted.
struct PartsOfTurn {
    std::size_t count;
    /// The angle changes by no more while time is taken as being in one part.
    double most_radians;
    std::function<std::size_t(std::uint64_t time)> at;
};

/// Proportional to the time without a half-life (0). `coverage` outlives it.
DecaysIn decays_of(const daemon::Coverage& coverage, double half_life_s);

/// [part] of the decays in the time of `coverage` whose pairs were found, the share in it: their sum is 1.
/// What `live` does not tell of a time is the mean of what it tells; within a time of it, all moments are
/// alike. Without any time all parts are alike.
std::vector<double> found_decays(const ScannerAngle& angle, const PartsOfTurn& parts,
                                 const daemon::Coverage& coverage, double half_life_s,
                                 const std::vector<LiveTime>& live);

}  // namespace petacq::petlm
