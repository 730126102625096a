// The blocks of several runs, as one sequence.
#pragma once

#include <span>
#include <vector>

#include "gpu/second_cuts.hpp"
#include "tools/petlm/resort/singles/singles_files.hpp"

namespace petacq::petlm {

struct OrderedBlock {
    const SinglesFiles* run = nullptr;
    const SinglesFiles::SinglesBlock* block = nullptr;
};

/// The blocks of all runs that may have singles in the range, by the time of their first single: when a block
/// is read, no later one has a single before its first.
std::vector<OrderedBlock> blocks_in_order(std::span<const SinglesFiles> runs, gpu::TickRange range);

}  // namespace petacq::petlm
