// The `sources` of a scanner description, of those who are heard.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tools/petctl/doctor/samples.hpp"

namespace petacq::petctl {

/// Of a status, with the modules of the samples added to those of its sources. As sources_heard().
nlohmann::json heard_sources(nlohmann::json status, const Impression& seen);
/// Of the samples alone: with another framing than that of the boards, the daemon does not know the modules.
nlohmann::json sampled_sources(const Impression& seen);

}  // namespace petacq::petctl
