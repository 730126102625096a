// petlm resort.
#pragma once

#include "tools/petlm/resort/search/options.hpp"

namespace petacq::petlm {

/// Finds coincidences from the singles of a run, or of the runs of several hosts: the records that one host
/// would have written with these settings. A run that is written has the seconds, too: what the singles do
/// not tell is that of the seconds of the runs, or unknown. Returns an exit status (base/status.hpp). Throws
/// UsageError, BadInput, daemon::NotListMode, config::Error, and std::system_error for I/O.
int resort(const ResortOptions& options);

}  // namespace petacq::petlm
