// The directory of a run that `petlm resort` writes. What is not made again comes from the runs that the
// singles are of.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config/configuration.hpp"
#include "daemon/coverage/coverage.hpp"
#include "daemon/listmode/series.hpp"
#include "daemon/seconds/second.hpp"
#include "gpu/pipeline.hpp"
#include "tools/petlm/records/output.hpp"
#include "tools/petlm/resort/singles/inputs.hpp"

namespace petacq::config {
struct Written;
}

namespace petacq::petlm {

/// What was made again.
struct ResortedRun {
    gpu::SingleCounts singles;
    gpu::FrameCounts taken;  ///< the saved singles
    daemon::SecondsTotal seconds;
    std::optional<double> live;  ///< mean share of the data of the boards that arrived; absent: unknown
    LostByAll lost_by_all;       ///< by hosts that heard one stream
    std::optional<gpu::GammaCounts> gammas;  ///< absent: none were looked for
    std::vector<daemon::ListModePart> coincidences_files;
    std::vector<daemon::ListModePart> triples_files;
    daemon::ListModePart seconds_file;
    std::string back_end;
};

/// Whether the output is a list-mode file (NAME.plm), rather than the directory of a run.
bool is_one_file(const std::filesystem::path& output);

/// What the coincidences cover that are found in what the inputs cover; before the times are settled, without
/// intervals. `output`: a file, of the runs that the singles are of, or the directory of a run of its own.
daemon::Coverage covered_by_result(const Inputs& inputs, const config::Configuration& configuration,
                                   const std::filesystem::path& output);

/// A record file that is complete under its partial name, as run.json describes it.
daemon::ListModePart part_of(const std::filesystem::path& file, std::uint64_t records,
                             std::uint64_t first_time, std::uint64_t last_time);

/// A record file as it stands under `files` of run.json.
nlohmann::json file_entry(const daemon::ListModePart& part, daemon::RecordKind kind);

/// Throws BadInput if singles named crystals that the scanner does not have.
void check_taken(const gpu::FrameCounts& taken, const Inputs& inputs);

/// What to say: "OUT: 5 prompts, 0 delayeds from 12 singles (cpu, 1 thread)".
config::Written summary(const std::filesystem::path& output, const ResortedRun& made, const Outputs& outputs);

/// Merges the tags of the inputs, and writes run.json. The ledger is the sum of theirs, but for what depends
/// on the settings: {"coincidence": ..., "energy": ...}, and "gammas" if there are any.
void complete_run(const Inputs& inputs, const nlohmann::json& settings, daemon::Coverage covered,
                  const ResortedRun& made, const std::filesystem::path& output);

}  // namespace petacq::petlm
