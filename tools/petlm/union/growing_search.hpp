// Finds coincidences in singles while they are written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

#include "tools/petlm/records/output.hpp"
#include "tools/petlm/resort/result/records_out.hpp"
#include "tools/petlm/resort/result/resorted_run.hpp"
#include "tools/petlm/resort/search/engines.hpp"
#include "tools/petlm/resort/search/gamma_border.hpp"
#include "tools/petlm/resort/search/workers.hpp"
#include "tools/petlm/resort/singles/inputs.hpp"
#include "tools/petlm/union/second_sums.hpp"

namespace petacq::petlm {

/// The search of petlm resort, one stretch of detector time after the other: as far as the singles are known,
/// less what a search looks ahead. What it writes does not depend on when it looks. One thread at a time.
class GrowingSearch {
  public:
    /// Creates the files of records under their partial names. `inputs`: one run whose file of singles is
    /// followed, as far as the run is known. The engines must stay.
    GrowingSearch(Inputs inputs, const Engines& engines, const std::filesystem::path& output);

    /// Searches what has been written since. Throws as RecordsOut and SinglesFiles do.
    void advance();
    /// Whether something has been searched: then all singles must lie in one interval.
    [[nodiscard]] bool has_begun() const { return start_.has_value(); }
    /// Searches the rest, and completes the run, which the caller commits. `inputs`: the same run, settled.
    ResortedRun finish(const Inputs& inputs, Outputs& outputs);

  private:
    template <class Use>
    void search(std::span<const SinglesFiles> singles, std::span<const gpu::TickRange> shards,
                gpu::TickRange all, std::span<const gpu::TickRange> seconds, Use use);

    Inputs inputs_;
    const Engines& engines_;
    const std::filesystem::path output_;
    std::optional<std::uint64_t> start_;  ///< of the first shard
    std::uint64_t planned_ = 0;           ///< where the next shard is planned to begin
    std::uint64_t begin_ = 0;             ///< where it does
    RecordsOut out_;
    GammaBorders borders_;
    SecondSums sums_;
    Workers workers_;
};

}  // namespace petacq::petlm
