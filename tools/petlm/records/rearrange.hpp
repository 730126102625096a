// cut and merge: list-mode files made of the records of others.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "tools/petlm/records/interval/in_seconds.hpp"

namespace petacq::petlm {

struct CutOptions {
    std::filesystem::path target;   ///< file or run directory
    std::filesystem::path output;   ///< list-mode file
    bool singles = false;           ///< of a run directory, take the singles instead of the coincidences
    bool triples = false;           ///< of a run directory, take the triples
    bool seconds = false;           ///< of a run directory, take the seconds
    std::uint64_t from = 0;         ///< ticks, inclusive
    std::uint64_t to = UINT64_MAX;  ///< ticks, exclusive
    IntervalInSeconds in_seconds;   ///< instead of from and to
    std::optional<unsigned> gate;   ///< channel: only records at times when its gate is open
    bool force = false;             ///< replace the output
    bool as_json = false;           ///< print what was written as JSON
};
/// Writes the records of an interval to a file; of seconds, those that lie in it as a whole. The gate tags
/// are those of the run that the target is, or that lies in the directory of a file. Returns an exit status.
/// Throws UsageError, BadInput, daemon::NotListMode, std::system_error.
int cut(const CutOptions& options);

struct MergeOptions {
    std::vector<std::filesystem::path> targets;  ///< files or run directories, at least one
    std::filesystem::path output;                ///< list-mode file
    bool singles = false;                        ///< of run directories, take the singles
    bool triples = false;                        ///< of run directories, take the triples
    bool force = false;                          ///< replace the output
    bool as_json = false;                        ///< print what was written as JSON
};
/// Writes the records of several files, or of the parts of a split run, to one file, in order; no seconds.
/// Returns and throws as cut() does.
int merge(const MergeOptions& options);

}  // namespace petacq::petlm
