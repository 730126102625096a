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

/// A name beside `file` that nobody can guess, for a file that is renamed to `file` once it is complete.
/// Create it with O_EXCL: what others put into the directory is then neither followed nor overwritten.
std::filesystem::path temporary_name(const std::filesystem::path& file);

}  // namespace petacq::config
