// Runs that were interrupted: a crash or a power cut ended the process that wrote them.
//
// The run.json of such a run still says "running". It counts as interrupted until an operator acknowledges
// it: then run.json says "interrupted", and the file .reserve (daemon/space/reserve.hpp) goes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace petacq::daemon {

struct InterruptedRun {
    std::string id;
    std::filesystem::path path;
    std::string start_utc;  ///< empty if its run.json cannot be read

    bool operator==(const InterruptedRun&) const = default;
};

/// The command that saves what the run holds, for a shell: it writes a copy into the working directory, since
/// operators may not write to `data_dir`.
std::string recovery_command(const InterruptedRun& run);

/// The interrupted runs that nobody has acknowledged, in the order of their starts, without the run
/// `current`. Looks for one file in each directory of `data_dir`, and reads run.json only where it finds it.
/// Throws RunDirectoryError when `data_dir` cannot be read.
std::vector<InterruptedRun> find_interrupted(const std::filesystem::path& data_dir,
                                             const std::string& current);

/// Throws RunDirectoryError when there is no such run or it was not interrupted, std::system_error when
/// run.json cannot be written.
void acknowledge_interrupted(const std::filesystem::path& data_dir, const std::string& run,
                             const std::string& current);

}  // namespace petacq::daemon
