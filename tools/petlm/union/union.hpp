// petlm union.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace petacq::petlm {

struct UnionOptions {
    std::vector<std::filesystem::path> runs;  ///< directories
    std::filesystem::path output;             ///< directory of the run to write
    bool follow = false;                      ///< they are still written, or will be
    bool any_name = false;                    ///< also runs of different names
    bool force = false;                       ///< replace the output
    bool as_json = false;                     ///< print what was written as JSON
    std::string backend = "auto";
    std::optional<std::uint32_t> threads;  ///< that search; absent or 0: as in ResortOptions
};

/// Writes the run of a host that received all that the hosts of these runs have, who all heard the same
/// boards. Returns an exit status (base/status.hpp). Throws as resort() does.
int unite(const UnionOptions& options);

}  // namespace petacq::petlm
