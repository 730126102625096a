// Exit statuses of petlm, and the exceptions that its commands throw besides those of the libraries.
#pragma once

#include <stdexcept>

#include "config/base/exit_status.hpp"

namespace petacq::petlm {

using enum exit_status::Value;

/// The command line asks for something impossible.
class UsageError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// The input is damaged, incomplete, or contradicts itself. The message names the file.
class BadInput : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

}  // namespace petacq::petlm
