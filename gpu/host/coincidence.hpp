// Coincidences among ordered singles on the CPU.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/arithmetic.hpp"
#include "gpu/host/worker_pool.hpp"
#include "gpu/pipeline.hpp"

namespace petacq::gpu {

/// Finds the coincidences of one segment. Keeps its memory between calls. One caller at a time.
class CoincidenceFinder {
  public:
    CoincidenceFinder(const PairRule& rule, const CoincidenceRules& rules, WorkerPool& pool);

    /// `singles` are ordered and include every single within window + delay of an opener. Those below index
    /// `decided` may open windows; the others serve only as partners. `first_anchor` is the first single that
    /// no earlier prompt group has taken. `out` holds the prompts held back by the previous call; the new
    /// records are merged into it in record order. Adds to `counts` and returns the next anchor (>= decided).
    std::size_t find(std::span<const Single> singles, std::size_t first_anchor, std::size_t decided,
                     std::uint32_t workers, std::vector<Coincidence>& out, SingleCounts& counts);

  private:
    struct Share {
        std::vector<Coincidence> prompts;
        std::vector<Coincidence> delayeds;
        std::vector<bool> used;  // members of the current group that belong to a pair
        SingleCounts counts;
        std::size_t next = 0;
    };
    void scan_groups(std::span<const Single> singles, std::size_t from, std::size_t to, Share& share) const;
    void scan_openers(std::span<const Single> singles, std::size_t from, std::size_t to, Share& share) const;
    void scan_delayed(std::span<const Single> singles, std::size_t from, std::size_t to, Share& share) const;

    PairRule rule_;
    CoincidenceRules rules_;
    WorkerPool& pool_;
    std::vector<Share> shares_;
    std::vector<std::size_t> cuts_;
    std::vector<Coincidence> delayeds_;
};

/// Sorts records that are already ordered by time into record order. Linear when few records share a time.
void order_equal_times(std::span<Coincidence> records);

}  // namespace petacq::gpu
