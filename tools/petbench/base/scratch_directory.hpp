// A directory for the files of a benchmark.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "config/base/error.hpp"

namespace petacq::bench {

/// Created empty, and removed with its contents at the end of the scope.
class ScratchDirectory {
  public:
    /// Creates `parent`/petbench-`suite`-PID. Throws config::IoError, also when it exists.
    ScratchDirectory(const std::filesystem::path& parent, const std::string& suite)
        : path_(parent / ("petbench-" + suite + "-" + std::to_string(getpid()))) {
        std::error_code error;
        if (!std::filesystem::create_directory(path_, error))
            throw config::IoError(path_.string() +
                                  (error ? ": cannot be created: " + error.message() : ": exists"));
    }
    ~ScratchDirectory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    ScratchDirectory(const ScratchDirectory&) = delete;
    ScratchDirectory& operator=(const ScratchDirectory&) = delete;

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

}  // namespace petacq::bench
