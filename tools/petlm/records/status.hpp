// Exit statuses of petlm, and the exceptions that its commands throw besides those of the libraries.
#pragma once

#include <stdexcept>

namespace petacq::petlm {

enum Status : int {
    ok = 0,
    has_problems = 1,
    usage = 64,
    not_list_mode = 65,
    io_failure = 74,
    bad_scanner = 78
};

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
