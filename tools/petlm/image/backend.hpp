// Which projector computes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/petlm/image/projector.hpp"

namespace petacq::image {

struct Chosen {
    std::unique_ptr<Projector> projector;
    bool cuda = false;
    std::string why;  ///< "asked for", "auto: CUDA cannot be used: ..."
};

/// `name`: cpu, cuda, or auto, which takes CUDA where it can be used. `budget` bytes are for the matrices of
/// the CPU; on a GPU they have what is free there. Throws config::Error when CUDA was asked for and cannot be
/// had, std::runtime_error when the GPU fails.
Chosen choose_projector(const std::string& name, const Grid& grid, const std::vector<Point>& points,
                        gpu::WorkerPool& pool, std::uint64_t budget);

}  // namespace petacq::image
