// The runs whose singles are searched together: one run, or those of the hosts of one scanner.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "gpu/second_cuts.hpp"
#include "tools/petlm/records/interval/in_seconds.hpp"
#include "tools/petlm/resort/singles_files.hpp"

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
    std::vector<gpu::TickRange> recorded;         ///< seconds, of all runs
    gpu::TickRange interval;                      ///< that is searched
    bool whole = false;                           ///< no run has data outside the interval
    std::vector<MissingData> missing;             ///< in the interval
    bool whole_blocks = false;  ///< a run that was interrupted ends with its last whole block

    /// run.json of the run whose start is that of the interval, or nearest before it.
    [[nodiscard]] const nlohmann::json& first() const;
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

/// What a run has: from its start to its stop. A run that was interrupted has no stop: it ends with its last
/// single.
gpu::TickRange interval_of(const nlohmann::json& document, const SinglesFiles& singles);

/// The tick that run.json gives under this key.
std::optional<std::uint64_t> ticks_in(const nlohmann::json& document, const char* key);

/// Throws UsageError if the output is the directory of one of the runs: it would replace their files.
void check_output(const std::filesystem::path& output, const InputOptions& options);

/// Throws UsageError if the runs do not belong together (scanner, calibration, clock, energy window).
void check_together(const Inputs& inputs);

/// Sets the interval, and what is missing in it, from the documents and the singles. Throws UsageError as
/// open_inputs() does.
void settle_interval(Inputs& inputs, const InputOptions& options);

/// Opens the runs. Throws UsageError if they do not belong together (scanner, calibration, clock, energy
/// window) or have no time in common, and as SinglesFiles does.
Inputs open_inputs(const InputOptions& options);

}  // namespace petacq::petlm
