// From the records of a slice, as they come from the device, to those of the result.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gpu/cuda/slot.hpp"
#include "gpu/host/worker_pool.hpp"

namespace petacq::gpu::cuda {

/// By several threads where that pays: one core copies at a tenth of the rate of the bus and the memory.
template <class T>
void copy_many(WorkerPool& pool, const T* from, std::size_t count, T* to) {
    constexpr std::size_t least = (std::size_t{1} << 20) / sizeof(T);
    const auto workers = static_cast<std::uint32_t>(std::clamp<std::size_t>(count / least, 1, pool.size()));
    pool.run(workers, [=](std::uint32_t w) {
        const std::size_t begin = count * w / workers;
        std::copy(from + begin, from + count * (w + 1) / workers, to + begin);
    });
}

/// Where the frames of a slice went, once its totals are on the host.
FrameCounts frame_counts(const Slot& slot);

/// Puts the records of slices, one after the other, into record order over all of them. Records at or above
/// the horizon of a slice are held back until the next, where delayeds of their time are still to come.
class RecordOrder {
  public:
    /// The records of a slice whose totals and records are on the host, behind the held ones. What `out` held
    /// before is overwritten: memory that has been in use is faster than fresh.
    void take(Slot& slot, WorkerPool& pool, std::vector<Coincidence>& out);
    void reset() { held_.clear(); }

  private:
    std::vector<Coincidence> held_;
    std::vector<Coincidence> next_held_;  // kept for its memory
};

}  // namespace petacq::gpu::cuda
