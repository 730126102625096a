// The errors of a configuration, scanner description or calibration.
#pragma once

#include <stdexcept>

namespace petacq::config {

/// The message names the file, the path of the key ("/coincidence/window_ticks") and what was expected.
class Error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// A file cannot be read or written (missing, a directory, no permission, disk full). Wrong content is a
/// plain Error.
class IoError : public Error {
  public:
    using Error::Error;
};

}  // namespace petacq::config
