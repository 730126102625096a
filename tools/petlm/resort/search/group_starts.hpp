// Where shards can be divided: group_start.hpp, on the singles of runs.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "daemon/listmode/file_reader.hpp"
#include "gpu/pipeline.hpp"
#include "gpu/rules/coincidence_rules.hpp"
#include "gpu/tick_range.hpp"
#include "tools/petlm/resort/singles/singles_files.hpp"

namespace petacq::petlm {

/// Finds where groups begin. Only singles in the energy window count. One thread at a time.
class GroupStarts {
  public:
    GroupStarts(std::span<const SinglesFiles> runs, const gpu::CoincidenceRules& rules,
                const gpu::EnergyWindow& energy)
        : runs_(runs), rules_(rules), energy_(energy) {}

    /// The begin of the shard after the one planned as `shard`: at its end, or shortly after it. It looks
    /// back from there as far as needed. If the singles of the shard do not tell, it asks `own_begin` for the
    /// begin of the shard.
    std::uint64_t next(gpu::TickRange shard, const std::function<std::uint64_t()>& own_begin);

  private:
    std::span<const std::uint64_t> times_in(gpu::TickRange range);

    const std::span<const SinglesFiles> runs_;
    const gpu::CoincidenceRules rules_;
    const gpu::EnergyWindow energy_;
    daemon::LoadedBlock block_;
    std::vector<gpu::Single> kept_;
    std::vector<std::uint64_t> times_;
};

}  // namespace petacq::petlm
