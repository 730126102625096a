// Parts become a run: the seconds, the tags and run.json, which names the parts as the files of coincidences.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>

#include "tools/petlm/resort/parts/part.hpp"
#include "tools/petlm/resort/search/engines.hpp"
#include "tools/petlm/resort/singles/inputs.hpp"

namespace petacq::config {
struct Written;
}

namespace petacq::petlm {

struct PartsOfRun {
    std::size_t count = 0;
    std::function<PartState(std::size_t)> state;  ///< of a part; asked for in order
    std::string back_end;                         ///< that made them
};

/// Writes the files of the run into the directory, and replaces those of an earlier call. Returns what they
/// hold. Throws BadInput if a part does not begin where the one before it ends.
config::Written join_parts(const Inputs& inputs, const Engines& engines, const PartsOfRun& parts,
                           const std::filesystem::path& directory);

}  // namespace petacq::petlm
