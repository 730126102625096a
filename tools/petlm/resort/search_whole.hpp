// One process searches all singles and writes the run, or the file of coincidences, that it finds in them.
#pragma once

#include <cstdint>
#include <filesystem>

#include "tools/petlm/records/output.hpp"
#include "tools/petlm/resort/result/resorted_run.hpp"
#include "tools/petlm/resort/search/engines.hpp"
#include "tools/petlm/resort/singles/inputs.hpp"

namespace petacq::petlm {

/// Creates the directory, unless the output is one file, and claims all files of coincidences and triples.
void claim_records(Outputs& outputs, const std::filesystem::path& output);

/// Writes everything under partial names, after claim_records(); the caller commits. `output`: as
/// is_one_file(). `in_a_shard`: singles, about. No file of records if the rules search for none. Throws as
/// resort() does.
ResortedRun search_whole(const Inputs& inputs, const Engines& engines, std::uint64_t in_a_shard,
                         const std::filesystem::path& output, Outputs& outputs);

}  // namespace petacq::petlm
