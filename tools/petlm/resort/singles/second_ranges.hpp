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

/// Which boards the runs have heard.
enum class HeardBoards : std::uint8_t {
    others,  ///< each those of its host: what is lost adds up
    same     ///< all the same ones: what one has lost another may have
};

/// What hosts that heard the same boards have lost together.
struct LostByAll {
    double datagrams = 0;                  ///< in the seconds of which it is known
    std::uint64_t unknown_ticks = 0;       ///< in the others
    std::vector<std::uint64_t> estimated;  ///< [bdm] ticks in which the share that arrived is an estimate
};

/// What the boards of all runs have reported. One pass from the first second to the last. Not thread-safe.
class BoardReports {
  public:
    BoardReports(std::span<const ReportingRun> runs, HeardBoards heard, const config::Geometry& geometry);

    /// Of a second that does not begin before those asked for earlier, in which so many singles of each
    /// module ([bdm]) were found. A run knows only the seconds that it has recorded as a whole.
    ///
    /// Other boards: the numbers of a module are the mean over the runs that know them; losses add up, and
    /// are unknown if one run does not know its own. Of the data of a module, the share that arrived is that
    /// of the run that has most. In times that a run does not cover nothing arrived in it.
    ///
    /// The same boards: the report of a run that heard all of the second that any has heard: of each module
    /// everything, or no less than the others and all singles found. Without such a run it is not known what
    /// was lost, and the numbers of a module are those of the run that has most of it. The share that arrived
    /// is then an estimate: that of this run, times the singles found, for each single of the run.
    daemon::BoardReport of(gpu::TickRange second, std::span<const std::uint64_t> singles);
    /// So far. Means nothing for other boards.
    [[nodiscard]] const LostByAll& lost_by_all() const { return lost_by_all_; }

  private:
    struct RunSeconds {
        std::unique_ptr<daemon::SecondsReader> reader;  ///< nullptr: no more seconds
        daemon::Intervals times;
        std::vector<bool> told;  ///< [bdm] a second has its share
    };
    /// What a run knows of a second.
    struct RunReport : daemon::BoardReport {
        bool whole = false;                  ///< it has recorded the second as a whole
        bool covers = false;                 ///< some of the second
        std::vector<std::uint64_t> singles;  ///< [bdm] if it is whole
    };
    class Live;

    RunReport of_run(RunSeconds& run, gpu::TickRange second) const;
    daemon::BoardReport of_others(std::span<const RunReport> runs) const;
    daemon::BoardReport of_same(std::span<const RunReport> runs, gpu::TickRange second,
                                std::span<const std::uint64_t> singles);
    /// Whether a share is known and larger than another one, or that is not known.
    static bool more(double a, double b);
    /// Whether the run has counted all singles of the module that were found.
    static bool counted(const RunReport& run, std::size_t m, std::span<const std::uint64_t> singles);
    /// [bdm] the run that has most of it.
    [[nodiscard]] std::vector<const RunReport*> most_of(std::span<const RunReport> runs,
                                                        std::span<const std::uint64_t> singles) const;
    void note_lost(double lost, gpu::TickRange second);

    const config::Geometry geometry_;
    const HeardBoards heard_;
    std::vector<RunSeconds> runs_;
    LostByAll lost_by_all_;
};

}  // namespace petacq::petlm
