// The directory of a run that `petlm resort` writes. What is not made again comes from the run that the
// singles are of.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "daemon/listmode/series.hpp"
#include "daemon/seconds/second.hpp"
#include "gpu/pipeline.hpp"
#include "tools/petlm/records/output.hpp"

namespace petacq::petlm {

/// What was made again.
struct ResortedRun {
    gpu::SingleCounts singles;
    gpu::FrameCounts taken;  ///< the saved singles
    daemon::SecondsTotal seconds;
    daemon::ListModePart coincidences_file;
    daemon::ListModePart seconds_file;
    std::string back_end;
};

/// Claims the files of the new run, and makes its directory.
void claim_run(Outputs& outputs, const std::filesystem::path& from, const std::filesystem::path& output);

/// Copies the tags of the run `from`, whose run.json is `run`, and writes run.json. The
/// ledger is that of the run, but for what depends on the settings: {"coincidence": ..., "energy": ...}.
void complete_run(const std::filesystem::path& from, const nlohmann::json& run,
                  const nlohmann::json& settings, const ResortedRun& made,
                  const std::filesystem::path& output);

}  // namespace petacq::petlm
