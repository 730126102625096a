// One rank of a job that finds coincidences.
#pragma once

#include "tools/petlm/mpi/communicator.hpp"
#include "tools/petlm/resort/search/options.hpp"

namespace petacq::petlm {

/// All ranks call it with the same options; `output` is a run directory, on a file system that all ranks
/// share or one of its own on each host. A job that is called again with the same options continues after the
/// parts that are there. `follow`: the runs may still be written; the job ends after they have ended. Returns
/// an exit status. Throws as resort() does.
int run_job(const ResortOptions& options, bool follow, Communicator& ranks);

}  // namespace petacq::petlm
