// The tags of several runs as one file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "daemon/coverage/coverage.hpp"

namespace petacq::petlm {

/// Writes the tags of the runs in the times that are covered, in order. No file if no run has tags. Returns
/// their number and the times of the first and the last in `times`. `truncated`: the whole blocks of files
/// without index are taken. Throws as RecordSource and ListModeFile do.
std::uint64_t merge_tags(std::span<const std::filesystem::path> runs, const daemon::Coverage& covered,
                         const std::filesystem::path& output, gpu::TickRange& times, bool truncated);

}  // namespace petacq::petlm
