// Opens files with errors that name the file and the reason.
#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>

namespace petacq::config {

struct CloseFile {
    void operator()(std::FILE* f) const { std::fclose(f); }
};
using FilePointer = std::unique_ptr<std::FILE, CloseFile>;

/// Opens a regular file; never waits for the other end of a pipe. Throws IoError naming the file and the
/// reason.
FilePointer open_for_reading(const std::filesystem::path& file);

}  // namespace petacq::config
