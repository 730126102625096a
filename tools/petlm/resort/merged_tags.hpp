// The tags of several runs as one file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "tools/petlm/records/tags.hpp"

namespace petacq::petlm {

/// Writes the tags of the runs in the interval, in order. No file if no run has tags. Returns their number
/// and the times of the first and the last in `times`. `truncated`: the whole blocks of files without index
/// are taken. Throws as RecordSource and ListModeFile do.
std::uint64_t merge_tags(std::span<const std::filesystem::path> runs, Interval within,
                         const std::filesystem::path& output, Interval& times, bool truncated);

}  // namespace petacq::petlm
