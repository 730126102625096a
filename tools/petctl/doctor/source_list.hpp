// The `sources` of a scanner description, of those who are heard.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/petctl/doctor/impression.hpp"

namespace petacq::petctl {

/// All that the scanner description lists and all that are heard.
struct CompleteList {
    std::string sources;               ///< as the description has them
    std::vector<std::string> changes;  ///< against the description, in words
    bool consistent = true;            ///< no BDM belongs to two of them
};

/// Of a status and samples. A silent source goes only if another one sends all its BDMs.
CompleteList complete_sources(const nlohmann::json& status, const Impression& seen);
/// Of the samples alone: with another framing than that of the boards, the daemon does not know the modules.
nlohmann::json sampled_sources(const Impression& seen);

}  // namespace petacq::petctl
