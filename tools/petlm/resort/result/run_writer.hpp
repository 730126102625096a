// The run that shards make: what it holds beside the coincidences, which the caller writes.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "daemon/coverage/coverage.hpp"
#include "daemon/listmode/series.hpp"
#include "daemon/seconds/file.hpp"
#include "gpu/second_cuts.hpp"
#include "tools/petlm/records/output.hpp"
#include "tools/petlm/resort/result/resorted_run.hpp"
#include "tools/petlm/resort/result/resorted_seconds.hpp"
#include "tools/petlm/resort/search/engines.hpp"
#include "tools/petlm/resort/search/gamma_border.hpp"
#include "tools/petlm/resort/search/shard.hpp"
#include "tools/petlm/resort/singles/inputs.hpp"

namespace petacq::petlm {

/// The seconds, the tags and run.json of a run; of a file of coincidences, only their sums. One thread at a
/// time.
class RunWriter {
  public:
    /// Claims the files. `output`: as is_one_file(). The inputs and the engines must stay. `borders`: of
    /// shards whose sums have been settled already.
    RunWriter(const Inputs& inputs, const Engines& engines, const std::filesystem::path& output,
              Outputs& outputs, GammaBorders borders = {});

    /// What the coincidences cover.
    [[nodiscard]] const daemon::Coverage& covered() const { return covered_; }
    [[nodiscard]] std::span<const gpu::TickRange> seconds() const { return seconds_.ranges(); }
    /// The sums of the next shard, which are settled with those of the shards before. Sums without a border
    /// are taken as they are.
    void add(ShardSums& shard);
    /// There are no more shards: completes the files, which the caller commits. `coincidences`, `triples`:
    /// the files of them, in order. Throws BadInput if singles named crystals that the scanner does not have.
    const ResortedRun& finish(std::vector<daemon::ListModePart> coincidences,
                              std::vector<daemon::ListModePart> triples, std::string back_end);

  private:
    const Inputs& inputs_;
    const Engines& engines_;
    const std::filesystem::path output_;
    const daemon::Coverage covered_;
    const std::unique_ptr<daemon::SecondsFile> seconds_file_;  ///< of a run
    ResortedSeconds seconds_;
    GammaBorders borders_;
    ResortedRun made_;
};

}  // namespace petacq::petlm
