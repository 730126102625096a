// The tags of several runs as one file.
#pragma once

#include <cstdint>
#include <filesystem>

#include "daemon/coverage/coverage.hpp"
#include "tools/petlm/resort/singles/inputs.hpp"

namespace petacq::petlm {

/// Writes the tags of the inputs in the times that are covered, in order. No file if no run has tags. Returns
/// their number and the times of the first and the last in `times`. Of a run that was interrupted, the whole
/// blocks of files without index are taken. A tag that several hosts of one stream have counts as often as in
/// the one that has it most. Throws as RecordSource and ListModeFile do.
std::uint64_t merge_tags(const Inputs& inputs, const daemon::Coverage& covered,
                         const std::filesystem::path& output, gpu::TickRange& times);

}  // namespace petacq::petlm
