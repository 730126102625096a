// The seconds of runs that are searched again: where they begin and end, and what the singles do not tell.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "config/scanner/geometry.hpp"
#include "daemon/coverage/intervals.hpp"
#include "daemon/seconds/reader.hpp"
#include "daemon/seconds/second.hpp"
#include "gpu/tick_range.hpp"
#include "tools/petlm/resort/singles/singles_files.hpp"

namespace petacq::petlm {

/// The seconds in these times: divided at the multiples of a second (ticks), and where the times begin and
/// end. Of a long time without singles, the seconds in the middle are one, as those of petacqd after a jump.
std::vector<gpu::TickRange> second_ranges(const daemon::Intervals& times,
                                          std::span<const SinglesFiles> singles, std::uint64_t second);

/// A run of which the boards have reported.
struct ReportingRun {
    std::filesystem::path directory;
    daemon::Intervals times;  ///< that it covers
};

/// What the boards of all runs have reported. One pass from the first second to the last. Not thread-safe.
class BoardReports {
  public:
    BoardReports(std::span<const ReportingRun> runs, const config::Geometry& geometry);

    /// Of a second that does not begin before those asked for earlier. The numbers of a module are the mean
    /// over the runs that know them; losses add up, and are unknown if one run does not know its own. A run
    /// knows only the seconds that it has recorded as a whole.
    ///
    /// Of the data of a module, the share that arrived is that of the run that has most. In times that a run
    /// does not cover nothing arrived in it.
    daemon::BoardReport of(gpu::TickRange second);

  private:
    struct RunSeconds {
        std::unique_ptr<daemon::SecondsReader> reader;  ///< nullptr: no more seconds
        daemon::Intervals times;
        std::vector<bool> told;  ///< [bdm] a second has its share
    };
    class Live;

    const config::Geometry geometry_;
    std::vector<RunSeconds> runs_;
};

}  // namespace petacq::petlm
