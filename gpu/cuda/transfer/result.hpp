// Turns the records that the device returns for a slice into those of the result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/cuda/slice/device_slice.hpp"
#include "gpu/tags.hpp"
#include "net/base/worker_pool.hpp"

namespace petacq::gpu::cuda {

/// Assembles the results of slices, in order. No thread-safety.
class ResultAssembly {
  public:
    /// Up to eight of PipelineOptions::threads take part in large results.
    explicit ResultAssembly(const PipelineOptions& options);

    /// Fills slice.result, except for what CoincidenceSearch::take_totals() has filled. All that the device
    /// has found must be on the host. With a gamma window, singles and triples are left to TripleAssembly.
    void assemble(DeviceSlice& slice);
    /// Forgets tags that wait and records that are held back.
    void reset();

  private:
    void take_records(const DeviceSlice& slice, RecordVector<Coincidence>& out);

    const std::uint32_t crystals_;
    const config::FrameVersion version_;
    const bool with_gammas_;
    net::WorkerPool copiers_;
    WaitingTags tags_;
    std::vector<Coincidence> held_;
    std::vector<Coincidence> mixed_;  // kept for its memory
};

}  // namespace petacq::gpu::cuda
