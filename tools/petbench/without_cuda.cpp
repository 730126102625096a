// The suites that need a GPU, in a petbench without CUDA.
#include <stdexcept>

#include "tools/petbench/base/suites.hpp"

namespace petacq::bench {

void run(const SortSuite& /*suite*/) {
    throw std::runtime_error("sort: needs a GPU, and this petbench is built without CUDA");
}

}  // namespace petacq::bench
