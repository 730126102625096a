// recover: a sound file of every whole block of a damaged one.
#pragma once

#include <filesystem>

namespace petacq::petlm {

struct RecoverOptions {
    std::filesystem::path target;  ///< file or run directory
    std::filesystem::path output;  ///< file, or directory for a run
    bool as_json = false;          ///< print what was recovered as JSON
};
/// Copies every whole block of a file to `output`; empty: <file without .plm>.recovered.plm. For a run
/// directory, `output` is a directory (empty: <run>.recovered) that receives its list-mode files under their
/// names, complete ones unchanged, histograms.json, ledger.csv, marks.jsonl, and a run.json of its own
/// (recovered_run.hpp). Never replaces existing files. Returns an exit status. Throws UsageError when the
/// output exists, daemon::NotListMode, std::system_error.
int recover(const RecoverOptions& options);

}  // namespace petacq::petlm
