// Copies the results of a slice to the host.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/cuda/base/memory.hpp"
#include "gpu/cuda/slice/slot.hpp"
#include "gpu/cuda/stages.hpp"

namespace petacq::gpu::cuda {

/// No thread-safety.
class Downloader {
  public:
    explicit Downloader(const PipelineOptions& options) : singles_wanted_(options.emit_singles) {}

    /// Starts copying the results of the slice that was searched last, on `down`. Slices with more records
    /// than the slot can hold take longer: they come in parts, which this call awaits and puts into order.
    void download(Slot& slot, Stages& stages, cudaStream_t compute, const Stream& down);

  private:
    void fetch_many(Slot& slot, const Stages& stages, cudaStream_t compute, const Stream& down);
    void fetch_kind(Kind kind, std::uint64_t total, std::vector<Coincidence>& all, const Slot& slot,
                    const Stages& stages, cudaStream_t compute, const Stream& down);

    const bool singles_wanted_;
    Event part_;
    // Used by fetch_many(); members to keep their memory.
    std::vector<Coincidence> many_prompts_;
    std::vector<Coincidence> many_delayeds_;
};

}  // namespace petacq::gpu::cuda
