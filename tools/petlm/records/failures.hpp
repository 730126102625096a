// What petlm and petlm-mpi say and return when a command fails.
#pragma once

#include <functional>
#include <string>

namespace petacq::petlm {

/// Runs a command and returns its exit status. If it throws, prints the reason after `program` on standard
/// error, and returns the status for that kind of failure.
int status_of(const std::string& program, const std::function<int()>& command);

}  // namespace petacq::petlm
