// The choice of the projector.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tools/petlm/reconstruction/projector/projector.hpp"

namespace petacq::image {

/// The CUDA projector, if it can be used.
struct CudaProjectors {
    std::optional<std::string> unusable;  ///< the reason, for a message; none if it can be used
    std::function<std::unique_ptr<Projector>(const Grid&, const config::LineGeometry&)> make;
};
/// For this machine and this program; make() is make_cuda_projector().
CudaProjectors cuda_projectors();

/// `name`: cpu, cuda or auto. Throws config::Error when CUDA was asked for and cannot be used.
void check_backend(const std::string& name, const std::optional<std::string>& cuda_unusable);

struct Computed {
    bool cuda = false;
    std::string why;  ///< "asked for", "auto: CUDA cannot be used: ..."
};

/// Calls `compute` with a projector: auto prefers CUDA. If the memory of the GPU proves too small, here or in
/// `compute`, auto calls `compute` again, from the start, with the CPU projector. Throws as check_backend(),
/// the projectors and `compute` do.
Computed compute_on(const std::string& name, const CudaProjectors& cuda, const Grid& grid,
                    const config::LineGeometry& geometry,
                    const std::function<std::unique_ptr<Projector>()>& make_host,
                    const std::function<void(Projector&)>& compute);

}  // namespace petacq::image
