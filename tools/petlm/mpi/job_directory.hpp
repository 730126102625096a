// The output directory of a job that may have been killed, and be started again.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "daemon/system/file.hpp"
#include "tools/petlm/mpi/communicator.hpp"

namespace petacq::petlm {

/// A directory that the ranks share, or one of each host. One thread at a time.
class JobDirectory {
  public:
    /// Creates the directory, and waits until no rank of a job that was killed works in it. `force`: begin()
    /// removes an earlier output. Throws UsageError if the directory has a whole run. Collective.
    JobDirectory(std::filesystem::path directory, bool force, Communicator& ranks);
    ~JobDirectory();
    JobDirectory(const JobDirectory&) = delete;
    JobDirectory& operator=(const JobDirectory&) = delete;
    /// A new job, or the same one again: what its parts depend on, `identity`, is in job.json. Throws
    /// UsageError if the directory has another job. Collective.
    void begin(const nlohmann::json& identity);
    /// The run is complete. Collective.
    void end();

  private:
    [[nodiscard]] std::vector<std::filesystem::path> locks() const;
    void prepare(const nlohmann::json& identity, bool writes) const;

    const std::filesystem::path directory_;
    const bool force_;
    Communicator& ranks_;
    std::optional<daemon::File> lock_;  ///< held while this rank works
};

}  // namespace petacq::petlm
