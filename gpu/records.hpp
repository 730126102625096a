// Vectors of records that are written before they are read.
#pragma once

#include "net/base/record_vector.hpp"

namespace petacq::gpu {

using net::RecordVector;

}  // namespace petacq::gpu
