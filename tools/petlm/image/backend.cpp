#include "tools/petlm/image/backend.hpp"

#include <optional>

#include "config/error.hpp"
#ifdef PETACQ_HAVE_CUSPARSE
#include "tools/petlm/image/projector_cuda.hpp"
#endif

namespace petacq::image {

Chosen choose_projector(const std::string& name, const Grid& grid, const std::vector<Point>& points,
                        gpu::WorkerPool& pool, std::uint64_t budget) {
    std::string why = "asked for";
    if (name != "cpu") {
#ifdef PETACQ_HAVE_CUSPARSE
        const std::optional<std::string> unusable = cuda_projector_unusable_reason();
        if (!unusable) {
            return {make_cuda_projector(grid, points), true,
                    name == "cuda" ? why : "auto: a usable GPU was found"};
        }
#else
        const std::optional<std::string> unusable = "this program was built without it";
#endif
        if (name == "cuda") {
            throw config::Error("--backend: 'cuda' cannot be used: " + *unusable +
                                "; expected a usable GPU and cuSPARSE, or 'auto' or 'cpu'");
        }
        why = "auto: CUDA cannot be used: " + *unusable;
    }
    return {make_host_projector(grid, points, pool, budget), false, why};
}

}  // namespace petacq::image
