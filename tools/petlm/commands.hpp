// The commands of petlm. Each gives an exit status, and throws what the library throws: daemon::NotListMode,
// std::system_error for I/O.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "gpu/types.hpp"

namespace petacq::petlm {

enum Status : int { ok = 0, has_problems = 1, usage = 64, not_list_mode = 65, io_failure = 74 };

/// The command line asks for what cannot be done.
class UsageError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// FILE or RUNDIR.
int info(const std::filesystem::path& target, bool as_json);
/// CSV to standard output; ends quietly when nobody reads it any more.
int dump(const std::filesystem::path& file, std::optional<gpu::Kind> kind,
         std::optional<std::uint64_t> limit);
/// FILEs or RUNDIRs. Goes on after a bad one; the highest status of all.
int verify(const std::vector<std::filesystem::path>& targets);
/// Writes `output`, or <file without .plm>.recovered.plm when empty; never over an existing file.
int recover(const std::filesystem::path& file, std::filesystem::path output);

}  // namespace petacq::petlm
