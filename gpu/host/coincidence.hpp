// Coincidences among ordered singles on the CPU.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/arithmetic.hpp"
#include "gpu/host/worker_pool.hpp"
#include "gpu/pipeline.hpp"

namespace petacq::gpu {

/// Finds coincidences among the singles of one segment. Keeps its memory between calls. One caller at a time.
class CoincidenceFinder {
  public:
    CoincidenceFinder(const PairRule& rule, const CoincidenceRules& rules, WorkerPool& pool);

    /// Ordered singles, of which those below index `decided` may open windows; those from it on are only
    /// looked at. All singles within window + delay of an opener are there. `first_anchor` is the first
    /// single that no earlier prompt group has taken. `out` holds the prompts that were held back before;
    /// the found records are put among them, in record order. Adds to `counts`, and returns the next anchor
    /// (>= decided).
    std::size_t find(std::span<const Single> singles, std::size_t first_anchor, std::size_t decided,
                     std::uint32_t workers, std::vector<Coincidence>& out, SingleCounts& counts);

  private:
    struct Share {
        std::vector<Coincidence> prompts;
        std::vector<Coincidence> delayeds;
        std::vector<bool> used;  // members of the present group that stand in a pair
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

/// Puts records that are ordered by time into record order. Linear where few records share a time.
void order_equal_times(std::span<Coincidence> records);

}  // namespace petacq::gpu
