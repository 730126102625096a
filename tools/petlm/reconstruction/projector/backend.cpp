#include "tools/petlm/reconstruction/projector/backend.hpp"

#include "config/base/error.hpp"
#include "gpu/device_memory_error.hpp"
#ifdef PETACQ_HAVE_CUDA
#include "gpu/cuda/cuda_pipeline.hpp"
#include "tools/petlm/reconstruction/projector/projector_cuda.hpp"
#endif

namespace petacq::image {

CudaProjectors cuda_projectors() {
#ifdef PETACQ_HAVE_CUDA
    return {gpu::cuda_unusable_reason(), [](const Grid& grid, const config::LineGeometry& geometry) {
                return make_cuda_projector(grid, geometry);
            }};
#else
    return {"this program was built without it", {}};
#endif
}

void check_backend(const std::string& name, const std::optional<std::string>& cuda_unusable) {
    if (name != "cuda" || !cuda_unusable) return;
    throw config::Error("--backend: 'cuda' cannot be used: " + *cuda_unusable +
                        "; expected a usable GPU, or 'auto' or 'cpu'");
}

Computed compute_on(const std::string& name, const CudaProjectors& cuda, const Grid& grid,
                    const config::LineGeometry& geometry,
                    const std::function<std::unique_ptr<Projector>()>& make_host,
                    const std::function<void(Projector&)>& compute) {
    check_backend(name, cuda.unusable);
    std::string why = "asked for";
    if (name != "cpu") {
        if (cuda.unusable) {
            why = "auto: CUDA cannot be used: " + *cuda.unusable;
        } else {
            try {
                compute(*cuda.make(grid, geometry));
                return {true, name == "cuda" ? why : "auto: a usable GPU was found"};
            } catch (const gpu::DeviceMemoryError& error) {
                if (name == "cuda") throw;
                why = std::string("auto: CUDA cannot be used: ") + error.what();
            }
        }
    }
    compute(*make_host());
    return {false, why};
}

}  // namespace petacq::image
