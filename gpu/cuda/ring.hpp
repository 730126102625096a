// One place in the ring of slices in flight.
#pragma once

#include <memory>
#include <vector>

#include "gpu/cuda/base/memory.hpp"
#include "gpu/cuda/slice/device_slice.hpp"

namespace petacq::gpu::cuda {

/// A slice and the events that order its work on the streams.
struct SliceInFlight {
    /// `memory`: of the first device. `flags`: those of the events that a timeline reads.
    SliceInFlight(std::size_t place_in_ring, const PipelineOptions& options, Memory& conversion,
                  Memory& memory, unsigned flags)
        : place(place_in_ring),
          slice(options, conversion, memory),
          uploaded(flags, slice.singles.device),
          converted(flags | cudaEventBlockingSync, slice.singles.device),
          folded(cudaEventDisableTiming, slice.singles.device),
          joined(cudaEventDisableTiming | cudaEventBlockingSync),
          ordered(flags),
          found(flags | cudaEventBlockingSync),
          downloaded(flags | cudaEventBlockingSync) {}
    const std::size_t place;
    DeviceSlice slice;
    // On the device that converts.
    Event uploaded;
    Event converted;
    Event folded;
    // On the first device.
    Event joined;
    Event ordered;
    Event found;
    Event downloaded;
};

using Ring = std::vector<std::unique_ptr<SliceInFlight>>;

}  // namespace petacq::gpu::cuda
