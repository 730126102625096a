#include "tests/gpu/backends.hpp"

#include <cstdio>
#include <cstdlib>

#ifdef PETACQ_CUDA
#include "gpu/cuda/cuda_pipeline.hpp"
#include "tests/gpu/cuda_usable.hpp"
#endif

namespace petacq::test {

namespace {

#ifdef PETACQ_CUDA
// PETACQ_SORT=name selects the sort engine.
std::unique_ptr<gpu::Pipeline> make_cuda(gpu::PipelineOptions options, const config::Calibration& calibration,
                                         const std::vector<std::uint32_t>& devices) {
    options.devices = devices;
    if (const char* name = std::getenv("PETACQ_SORT"); name != nullptr)
        options.sort_engine = config::from_name<gpu::SortEngine>(name);
    return gpu::make_cuda_pipeline(options, calibration);
}
#endif

std::vector<Backend> find_backends() {
    std::vector<Backend> all{{"host", gpu::make_cpu_pipeline}};
#ifdef PETACQ_CUDA
    if (const auto reason = gpu::cuda_unusable_reason()) {
        std::fprintf(stderr, "on the CPU back-end only: %s\n", reason->c_str());
    } else {
        const auto add = [&](const char* name, const std::vector<std::uint32_t>& devices) {
            all.push_back({name, [=](const gpu::PipelineOptions& options, const config::Calibration& c) {
                               return make_cuda(options, c, devices);
                           }});
        };
        add("cuda", {});
        add("cuda2", two_devices());
    }
#endif
    // PETACQ_BACKEND=name runs only that one, for slow tools.
    if (const char* only = std::getenv("PETACQ_BACKEND"); only != nullptr) {
        std::vector<Backend> chosen;
        for (Backend& backend : all) {
            if (backend.name == only) chosen.push_back(std::move(backend));
        }
        if (chosen.empty()) {
            std::fprintf(stderr, "PETACQ_BACKEND=%s: there is no such back-end here\n", only);
            std::exit(1);
        }
        return chosen;
    }
    return all;
}

}  // namespace

const std::vector<Backend>& backends() {
    static const std::vector<Backend> all = find_backends();
    return all;
}

}  // namespace petacq::test
