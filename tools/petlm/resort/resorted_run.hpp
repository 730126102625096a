// The directory of a run that `petlm resort` writes. What is not made again comes from the runs that the
// singles are of.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "daemon/listmode/series.hpp"
#include "daemon/seconds/second.hpp"
#include "gpu/pipeline.hpp"
#include "tools/petlm/records/output.hpp"
#include "tools/petlm/resort/inputs.hpp"

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

/// A record file that is complete under its partial name, as run.json describes it.
daemon::ListModePart part_of(const std::filesystem::path& file, std::uint64_t records,
                             std::uint64_t first_time, std::uint64_t last_time);

/// Claims the files of the new run, and makes its directory.
void claim_run(Outputs& outputs, const std::filesystem::path& output);

/// Merges the tags of the inputs, and writes run.json. The ledger is the sum of theirs, but for what depends
/// on the settings: {"coincidence": ..., "energy": ...}.
void complete_run(const Inputs& inputs, const nlohmann::json& settings, const ResortedRun& made,
                  const std::filesystem::path& output);

}  // namespace petacq::petlm
