// petlm resort in several processes that share nothing but files: --part K/N in each, --join when all are
// done.
#pragma once

#include "tools/petlm/resort/search/options.hpp"

namespace petacq::petlm {

/// Makes the parts of a share of the run that are not in the output directory yet. Any number of processes
/// may do so at the same time. Returns an exit status. Throws as resort() does.
int make_parts(const ResortOptions& options);

/// Makes the run of its parts, which are in the output directory. Throws BadInput, naming them, if parts are
/// missing.
int join_parts(const ResortOptions& options);

}  // namespace petacq::petlm
