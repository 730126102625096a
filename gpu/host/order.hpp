// Ordering of singles by (time, crystal, energy) on the CPU.
//
// Converted singles are nearly ordered: they come from several streams, each in its own order. One pass
// distributes the singles over buckets of equal time ranges, small enough for the L1 cache. Each bucket is
// distributed again over finer buckets of about one single, and an insertion sort finishes. The cost is
// linear for singles spread over time, and n log n where many singles share a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gpu/host/single_buffer.hpp"
#include "gpu/host/worker_pool.hpp"
#include "gpu/types.hpp"

namespace petacq::gpu {

/// Sorts all singles below a limit into one array and collects the others. Keeps its memory between calls.
/// One caller at a time.
class Orderer {
  public:
    explicit Orderer(WorkerPool& pool);

    /// Appends the singles of `parts` with a time below `limit` (without a limit, all of them) to `ready`, in
    /// order. The others go to `later`, in no particular order. All times lie within `range`, and `later` is
    /// not one of the parts.
    void order(std::span<const std::span<const Single>> parts, TimeRange range,
               std::optional<std::uint64_t> limit, std::uint32_t workers, SingleBuffer& ready,
               SingleBuffer& later);

  private:
    struct Piece {
        const Single* first;
        std::size_t count;
    };
    void cut_into_pieces(std::span<const std::span<const Single>> parts, std::uint32_t workers);

    WorkerPool& pool_;
    std::vector<std::vector<Piece>> pieces_;           // [worker]
    std::vector<std::vector<std::uint32_t>> cursors_;  // [worker][bucket], the last bucket being `later`
    std::vector<std::uint32_t> starts_;                // [bucket]
    SingleBuffer spread_;
};

/// Sorts source[0..n) into target. All times lie in [low, low + 2^width), and the arrays do not overlap.
void sort_bucket(const Single* source, std::size_t n, std::uint64_t low, unsigned width, Single* target);

}  // namespace petacq::gpu
