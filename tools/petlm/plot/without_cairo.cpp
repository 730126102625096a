// plot in a petlm that was built without cairo.
#include "tools/petlm/commands.hpp"

namespace petacq::petlm {

int plot(const PlotOptions& /*options*/) {
    throw UsageError(
        "plot: this petlm was built without cairo, which draws the pictures; install libcairo2-dev and build "
        "it"
        " again. The numbers can be had without: petlm export, and tools/python");
}

}  // namespace petacq::petlm
