// plot in a petlm that was built without cairo.
#include "tools/petlm/plot/plot.hpp"
#include "tools/petlm/records/status.hpp"

namespace petacq::petlm {

int plot(const PlotOptions& /*options*/) {
    throw UsageError(
        "plot: this petlm was built without cairo, which draws the pictures; install libcairo2-dev and build "
        "petlm again. petlm export and tools/python give the numbers without it");
}

}  // namespace petacq::petlm
