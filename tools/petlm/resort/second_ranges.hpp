// The seconds of runs that are searched again: where they begin and end, and what the singles do not tell.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "config/geometry.hpp"
#include "daemon/seconds/reader.hpp"
#include "daemon/seconds/second.hpp"
#include "gpu/second_cuts.hpp"
#include "tools/petlm/resort/singles_files.hpp"

namespace petacq::petlm {

/// The seconds that a run has recorded; none without a file that can be read.
std::vector<gpu::TickRange> recorded_seconds(const std::filesystem::path& run);

/// The seconds in which the runs have singles or recorded seconds, one after the other, within the interval.
/// They begin and end as the runs have `recorded` them, in any order. Where nothing is recorded, they begin
/// at multiples of a second (ticks), and a long time without singles is one.
std::vector<gpu::TickRange> second_ranges(std::vector<gpu::TickRange> recorded,
                                          std::span<const SinglesFiles> singles, std::uint64_t second,
                                          gpu::TickRange interval);

/// The seconds in a stretch, whatever will be recorded of it: each lies in one of second_ranges() of the
/// whole, or there are no singles in it. `divisions`: where recorded seconds begin or end besides multiples
/// of a second, in any order.
std::vector<gpu::TickRange> seconds_in(gpu::TickRange stretch, std::vector<std::uint64_t> divisions,
                                       std::span<const SinglesFiles> singles, std::uint64_t second);

/// What the boards of all runs have reported. One pass from the first second to the last. Not thread-safe.
class BoardReports {
  public:
    BoardReports(std::span<const std::filesystem::path> runs, const config::Geometry& geometry);

    /// Of a second that does not begin before those asked for earlier. The numbers of a module are the mean
    /// over the runs that know them; losses add up, and are unknown if one run does not know its own. A run
    /// knows only the seconds that it has recorded as a whole.
    daemon::BoardReport of(gpu::TickRange second);

  private:
    const config::Geometry geometry_;
    std::vector<std::unique_ptr<daemon::SecondsReader>> readers_;  ///< nullptr: no more seconds
};

}  // namespace petacq::petlm
