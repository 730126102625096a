// What is thrown for a configuration, scanner description or calibration that cannot be used.
#pragma once

#include <stdexcept>

namespace petacq::config {

/// The message names the file, the path of the key ("/coincidence/window_ticks") and what was expected.
class Error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// A file that cannot be read or written at all (missing, a directory, no permission, disk full), as against
/// one whose content is wrong.
class IoError : public Error {
  public:
    using Error::Error;
};

}  // namespace petacq::config
