// What boards read from detections: the position and the ADC counts in their frames.
#pragma once

#include <cstdint>

#include "tools/petsim/simulation/base/chunk.hpp"

namespace petacq::sim {

class ReadOut {
  public:
    ReadOut() = default;
    virtual ~ReadOut() = default;
    ReadOut(const ReadOut&) = delete;
    ReadOut& operator=(const ReadOut&) = delete;

    /// Fills the unsorted hits of the chunk in the order of its detections.
    virtual void read(ChunkDraft& draft) const = 0;
    /// Raw times are earlier by at most this many ticks.
    [[nodiscard]] virtual std::int64_t highest_offset() const = 0;
};

}  // namespace petacq::sim
