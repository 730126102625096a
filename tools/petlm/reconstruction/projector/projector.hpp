// The products that EM needs, along lines that are traced anew each time: one interface for CPU and CUDA.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "net/base/worker_pool.hpp"
#include "tools/petlm/reconstruction/projector/grid.hpp"
#include "tools/petlm/reconstruction/projector/tof.hpp"

namespace petacq::image {

/// What was measured: each row is a line, or one bin of the time of flight of a line.
struct Rows {
    std::span<const Pair> pairs;
    std::span<const std::int16_t> bins;  ///< [row] of `tof`; empty if that is not used
    std::span<const float> prompts;
    std::span<const float> additive;
    TofBins tof;
};

/// How an image fits the prompts of rows.
struct Compared {
    double log_likelihood = 0;  ///< sum of prompts * log(expected)
    double outside = 0;         ///< prompts of rows along which the image is 0
};

/// Not thread-safe. Throws std::runtime_error when the device fails; gpu::DeviceMemoryError, one of these,
/// when its memory is too small.
class Projector {
  public:
    Projector() = default;
    virtual ~Projector() = default;
    Projector(const Projector&) = delete;
    Projector& operator=(const Projector&) = delete;

    /// The rows that compare() takes from now on; they must outlive it.
    virtual void use(const Rows& rows) = 0;
    /// With A[row][voxel], the weights of walk_row(), expected = A image + additive for the rows begin..end.
    /// Unless `back` is empty, it becomes A^T (prompts / expected), but 0 in voxels in which the image is 0.
    virtual Compared compare(std::span<const float> image, std::size_t begin, std::size_t end,
                             std::span<float> back) = 0;
};

/// Bytes of the CPU projector.
std::uint64_t host_projector_bytes(const Grid& grid);
/// A projector that computes on the threads of the pool, which must outlive it. The sums do not depend on the
/// number of threads: they are taken over fixed shares of the rows and added up in a fixed order.
std::unique_ptr<Projector> make_host_projector(const Grid& grid, const config::LineGeometry& geometry,
                                               net::WorkerPool& pool);

}  // namespace petacq::image
