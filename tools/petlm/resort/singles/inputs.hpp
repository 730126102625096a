// The runs whose singles are searched together: one run, or those of the hosts of one scanner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "daemon/coverage/coverage.hpp"
#include "gpu/tick_range.hpp"
#include "tools/petlm/records/interval/in_seconds.hpp"
#include "tools/petlm/resort/singles/second_ranges.hpp"
#include "tools/petlm/resort/singles/singles_files.hpp"

namespace petacq::petlm {

/// A stretch of time in which a run has no data.
struct MissingData {
    std::string run;
    gpu::TickRange range;
};

struct Inputs {
    std::vector<std::filesystem::path> runs;      ///< directories
    std::vector<std::filesystem::path> files_at;  ///< of each: where its seconds and tags are
    std::vector<nlohmann::json> documents;        ///< run.json of each
    std::vector<SinglesFiles> singles;            ///< of each
    std::vector<bool> ended;                      ///< of each: nobody writes it any more
    std::vector<daemon::Coverage> coverages;      ///< of the singles of each, as far as it is known
    bool settled = false;                         ///< what follows is known
    daemon::Intervals searched;                   ///< times
    gpu::TickRange interval;                      ///< from the first of these to the last
    bool whole = false;                           ///< no run has data outside of it
    std::vector<MissingData> missing;             ///< in the times that are searched
    bool whole_blocks = false;  ///< a run that was interrupted ends with its last whole block
    /// The singles are those of one stream that several hosts heard: the runs of these, which have its tags
    /// and what its boards reported. Empty: each of the runs has other boards.
    std::vector<ReportingRun> of_one_stream;

    /// The number of the run whose start is that of the interval, or nearest before it: the result begins
    /// with it, and has its name, its run.json and its time of day.
    [[nodiscard]] std::size_t first() const;
    /// Whose boards have reported, and when: those of one stream or, without them, the runs.
    [[nodiscard]] std::vector<ReportingRun> reporting() const;
    /// The directories of the hosts of one stream or, without them, these.
    [[nodiscard]] std::vector<std::filesystem::path> heard_by(
        const std::vector<std::filesystem::path>& others) const;
    [[nodiscard]] HeardBoards heard() const {
        return of_one_stream.empty() ? HeardBoards::others : HeardBoards::same;
    }
};

/// What is to be searched. The time that all runs have in common, or, with `partial`, all their time.
struct InputOptions {
    std::vector<std::filesystem::path> runs;  ///< directories, or files of singles in them
    std::uint64_t from = 0;                   ///< ticks, inclusive
    std::uint64_t to = UINT64_MAX;            ///< ticks, exclusive
    IntervalInSeconds in_seconds;             ///< instead of from and to: in_ticks() (settings.hpp)
    bool partial = false;
};

/// run.json of a run directory, or of that of a file. Throws UsageError unless it has a scanner and a
/// configuration.
nlohmann::json run_document(const std::filesystem::path& target);

/// What the singles of a run cover. `target`: its directory, or a file of singles in it. `document`: its
/// run.json.
daemon::Coverage coverage_of_singles(const std::filesystem::path& target, const nlohmann::json& document);

/// The times that a run has, or has so far. One that was interrupted, or is being written, does not say where
/// it ends: it ends with its last single. A run of 1.0 has its singles, whatever it says.
daemon::Intervals times_of(const daemon::Coverage& coverage, const SinglesFiles& singles);

/// Throws UsageError if the output is the directory of one of the runs: it would replace their files.
void check_output(const std::filesystem::path& output, const InputOptions& options);

/// Throws UsageError if the runs do not belong together (scanner, calibration, clock, energy window).
void check_together(const Inputs& inputs);

/// Sets the times that are searched, and what is missing in them, from the coverages and the singles. Throws
/// UsageError as open_inputs() does.
void settle_interval(Inputs& inputs, const InputOptions& options);

/// Opens the runs. Throws UsageError if they do not belong together (scanner, calibration, clock, energy
/// window) or have no time in common, and as SinglesFiles does.
Inputs open_inputs(const InputOptions& options);

}  // namespace petacq::petlm
