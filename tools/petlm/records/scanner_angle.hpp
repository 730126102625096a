// The angle of a scanner that turns, at any time of the records of a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "config/scanner/rotation.hpp"
#include "daemon/coverage/coverage.hpp"

namespace petacq::petlm {

/// From the position tags of the runs whose records `target`, a run directory or a file, has. Each run has
/// its own tags: nothing is interpolated from one to the next. Thread-safe.
class ScannerAngle {
  public:
    /// Throws BadInput if a run is not found or has no position tag of the channel in its time, and as
    /// RecordSource does.
    ScannerAngle(const std::filesystem::path& target, const daemon::Coverage& coverage,
                 const config::Rotation& rotation);

    /// Radians from +x to +y, of any number of turns.
    [[nodiscard]] double at(std::uint64_t time) const { return run_at(time).angle.at(time); }

    /// Takes `times` apart into ranges in which the scanner turns by at most `most_radians`, or none.
    void for_each_range(const daemon::Intervals& times, double most_radians,
                        const std::function<void(gpu::TickRange)>& use) const;

  private:
    struct OfRun {
        std::uint64_t start;
        config::AngleOverTime angle;
    };
    [[nodiscard]] const OfRun& run_at(std::uint64_t time) const;

    std::vector<OfRun> runs_;  ///< by their starts
};

}  // namespace petacq::petlm
