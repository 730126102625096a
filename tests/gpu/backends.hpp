// The back-ends that the suite runs on. A back-end is added in backends.cpp, nowhere else.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gpu/pipeline.hpp"

namespace petacq::test {

struct Backend {
    std::string name;
    std::function<std::unique_ptr<gpu::Pipeline>(const gpu::PipelineOptions&, const config::Calibration&)>
        make;
};

/// The back-ends that can run here.
const std::vector<Backend>& backends();

}  // namespace petacq::test
