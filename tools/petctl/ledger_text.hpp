// A ledger with its identities written out.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tools/petctl/text.hpp"

namespace petacq::petctl {

/// From {"run", "state", "ledger"}. Counters that are missing show as "-".
Lines ledger_lines(const nlohmann::json& answer);

}  // namespace petacq::petctl
