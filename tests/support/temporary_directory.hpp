// A directory for the files of one test.
#pragma once

#include <filesystem>
#include <string>

namespace petacq::test {

/// Creates an empty directory under `parent` and removes it with everything in it at the end of its life.
class TemporaryDirectory {
  public:
    /// Throws std::system_error if the directory cannot be created.
    explicit TemporaryDirectory(const std::filesystem::path& parent = std::filesystem::temp_directory_path());
    ~TemporaryDirectory();
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    [[nodiscard]] std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

  private:
    std::filesystem::path path_;
};

}  // namespace petacq::test
