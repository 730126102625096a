#include "tests/gpu/backends.hpp"

namespace petacq::test {

const std::vector<Backend>& backends() {
    static const std::vector<Backend> all{{"host", gpu::make_host_pipeline}};
    return all;
}

}  // namespace petacq::test
