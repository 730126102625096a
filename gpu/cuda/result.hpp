// From the records of a slice, as they come from the device, to those of the result.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/cuda/slot.hpp"

namespace petacq::gpu::cuda {

/// Puts the records of slices, one after the other, into record order over all of them. Records at or above
/// the horizon of a slice are held back until the next, where delayeds of their time are still to come.
class RecordOrder {
  public:
    /// The records of a slice whose totals and records are on the host, behind the held ones.
    void take(Slot& slot, std::vector<Coincidence>& out);
    void reset() { held_.clear(); }

  private:
    std::vector<Coincidence> held_;
};

}  // namespace petacq::gpu::cuda
