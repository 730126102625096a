// The order of records that share a time.
#pragma once

#include <span>

#include "gpu/types.hpp"

namespace petacq::gpu {

/// Sorts records that are already ordered by time into record order. Linear when few records share a time.
void order_equal_times(std::span<Coincidence> records);

}  // namespace petacq::gpu
