#pragma once

#include <stdexcept>

namespace petacq::gpu {

/// The device lacks the memory for the options. The message gives the bytes needed and free.
class DeviceMemoryError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

}  // namespace petacq::gpu
