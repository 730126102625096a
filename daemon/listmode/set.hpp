// Sets of list-mode files: several files that are written side by side and read as one.
//
// Block b of a set of N files is in file b mod N. The files of coincidences.plm are coincidences.1.plm,
// coincidences.2.plm, ...; the set goes by the name without number, as the one file would. The description of
// each file says which of how many it is ("file", "files").
#pragma once

#include <cstdint>
#include <filesystem>

namespace petacq::daemon {

/// Most files of a set.
inline constexpr std::uint32_t max_files = 16;

/// The name of a file, counted from 0, of the set of that name, which may have a suffix after ".plm".
std::filesystem::path file_of_set(const std::filesystem::path& set, std::uint32_t file);
/// The set that a file with this name belongs to; the path itself if the name has no number. Whether the file
/// does belong to a set, its description says.
std::filesystem::path set_of_file(const std::filesystem::path& path);
/// Sizes of the file, or of all files of its set that are there, for a display of progress.
std::uint64_t bytes_of_files(const std::filesystem::path& path);

}  // namespace petacq::daemon
