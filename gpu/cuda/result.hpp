// Turns the records that the device returns for a slice into those of the result.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gpu/cuda/slot.hpp"
#include "gpu/host/worker_pool.hpp"

namespace petacq::gpu::cuda {

/// Copies with several threads where that pays: one core reaches a tenth of the bus rate.
template <class T>
void copy_many(WorkerPool& pool, const T* from, std::size_t count, T* to) {
    constexpr std::size_t least = (std::size_t{1} << 20) / sizeof(T);
    const auto workers = static_cast<std::uint32_t>(std::clamp<std::size_t>(count / least, 1, pool.size()));
    pool.run(workers, [=](std::uint32_t w) {
        const std::size_t begin = count * w / workers;
        std::copy(from + begin, from + count * (w + 1) / workers, to + begin);
    });
}

/// The frame counts of a slice. Its totals must be on the host.
FrameCounts frame_counts(const Slot& slot);

/// Puts the records of consecutive slices into one record order. Records at or above the horizon of a slice
/// are held back until the next slice, because delayeds with the same time may still follow.
class RecordOrder {
  public:
    /// Writes the held records and those of the slice to `out`. The totals and records of the slice must be
    /// on the host. `out` is overwritten and keeps its memory, because memory already in use is faster than
    /// fresh memory.
    void take(Slot& slot, WorkerPool& pool, std::vector<Coincidence>& out);
    void reset() { held_.clear(); }

  private:
    std::vector<Coincidence> held_;
    std::vector<Coincidence> next_held_;  // kept for its memory
};

}  // namespace petacq::gpu::cuda
