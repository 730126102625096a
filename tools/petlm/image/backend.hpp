// Which projector computes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tools/petlm/image/projector.hpp"

namespace petacq::image {

/// What a GPU offers, if there is one.
struct CudaProjectors {
    std::optional<std::string> unusable;  ///< why, in words for a message; none: it can be used
    std::function<std::unique_ptr<Projector>(const Grid&, const std::vector<Point>&)> make;
};
/// Of this machine and this program. Its make() is make_cuda_projector().
CudaProjectors cuda_projectors();

/// `name`: cpu, cuda, or auto. Throws config::Error when CUDA was asked for and cannot be had.
void check_backend(const std::string& name, const std::optional<std::string>& cuda_unusable);

struct Computed {
    bool cuda = false;
    std::string why;  ///< "asked for", "auto: CUDA cannot be used: ..."
};

/// Calls `compute` with a projector: auto takes CUDA where it can be used. When the memory of the GPU turns
/// out to be short, now or in `compute`, auto calls `compute` with the CPU's instead, from the beginning.
/// Throws as check_backend() does, and what the projectors and `compute` throw.
Computed compute_on(const std::string& name, const CudaProjectors& cuda, const Grid& grid,
                    const std::vector<Point>& points,
                    const std::function<std::unique_ptr<Projector>()>& make_host,
                    const std::function<void(Projector&)>& compute);

}  // namespace petacq::image
