// The files that a command writes. An existing file is replaced only with --force.
#pragma once

#include <filesystem>
#include <vector>

#include "daemon/system/file.hpp"

namespace petacq::petcal {

/// Not thread-safe.
class Outputs {
  public:
    explicit Outputs(bool force) : if_exists_(force ? daemon::IfExists::overwrite : daemon::IfExists::fail) {}

    /// `file` becomes the temporary name under which the command writes it, as a whole. Throws
    /// petlm::UsageError if it exists and would have to be replaced without force.
    void claim(std::filesystem::path& file);
    /// Gives the files that have been written their names. Throws petlm::UsageError if a file has appeared in
    /// the meantime, std::system_error.
    void publish();
    /// The files that have their names, after publish().
    [[nodiscard]] const std::vector<std::filesystem::path>& written() const { return written_; }

  private:
    struct Output {
        std::filesystem::path file;
        std::filesystem::path temporary;
    };

    daemon::IfExists if_exists_;
    std::vector<Output> outputs_;
    std::vector<std::filesystem::path> written_;
};

}  // namespace petacq::petcal
