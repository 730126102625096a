// The shards of a job, planned as far as the runs are written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tools/petlm/resort/search/engines.hpp"
#include "tools/petlm/resort/search/options.hpp"
#include "tools/petlm/resort/search/shard.hpp"
#include "tools/petlm/resort/singles/inputs.hpp"

namespace petacq::petlm {

/// All singles before this time are known: the minimum over the runs. UINT64_MAX: nothing follows.
std::uint64_t watermark_of(const Inputs& inputs, const InputOptions& options);

/// Ranks with the same inputs plan the same shards. One thread at a time.
class Plan {
  public:
    /// At most one shard for each rank is planned at once.
    Plan(const ResortOptions& options, const Engines& engines, std::size_t ranks);

    /// Before the first next(): the coincidences of this stretch are there.
    void go_on_after(gpu::TickRange stretch);
    /// The next shards, one after the other. None: nothing more is known yet, or finished(). Settles the
    /// interval of the inputs once all runs have ended. Throws as settle_interval() does, and BadInput if
    /// that interval is not the one that was searched.
    std::vector<gpu::TickRange> next(Inputs& inputs);
    /// The last shard planned ends with the interval.
    [[nodiscard]] bool finished() const { return finished_; }
    /// Where the interval ends. UINT64_MAX while that is not known: no shard comes near its end before.
    [[nodiscard]] std::uint64_t limit() const { return limit_; }
    /// Where the first shard begins; known once next() has returned one.
    [[nodiscard]] std::uint64_t start() const { return begin_.value_or(0); }
    /// Where the next shard begins.
    [[nodiscard]] std::uint64_t position() const { return position_; }

  private:
    [[nodiscard]] std::optional<std::uint64_t> begin_of(const Inputs& inputs) const;

    const InputOptions& options_;
    const std::uint64_t reach_;  ///< ticks after a shard whose singles belong to its search
    ShardLimits limits_;
    std::optional<std::uint64_t> begin_;  ///< of the first shard
    std::uint64_t position_ = 0;
    std::uint64_t limit_ = UINT64_MAX;
    bool finished_ = false;
};

}  // namespace petacq::petlm
