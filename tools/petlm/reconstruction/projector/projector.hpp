// The system matrix in pieces, and its products that EM needs: one interface for the CPU and CUDA.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gpu/pipeline.hpp"
#include "net/base/worker_pool.hpp"
#include "tools/petlm/reconstruction/projector/grid.hpp"

namespace petacq::image {

/// Rows of the matrix A in CSR: A[line][voxel] is the length in mm of the line in the voxel. The projector
/// that built it must outlive it.
class SystemMatrix {
  public:
    SystemMatrix() = default;
    virtual ~SystemMatrix() = default;
    SystemMatrix(const SystemMatrix&) = delete;
    SystemMatrix& operator=(const SystemMatrix&) = delete;

    /// lines = A x, where x is the projector's image.
    virtual void forward(std::span<float> lines) = 0;
    /// Adds A^T lines to the projector's sums.
    virtual void back(std::span<const float> lines) = 0;
};

/// Holds an image and the sums of back-projections in the memory where its matrices compute. Not thread-safe.
/// Throws std::runtime_error when the device fails; gpu::DeviceMemoryError, one of these, when its memory is
/// too small.
class Projector {
  public:
    Projector() = default;
    virtual ~Projector() = default;
    Projector(const Projector&) = delete;
    Projector& operator=(const Projector&) = delete;

    virtual void set_image(std::span<const float> image) = 0;
    virtual void clear_sums() = 0;
    virtual void read_sums(std::span<float> sums) = 0;
    /// Builds the matrix of these lines. `row_start` has one number more than there are lines: the index at
    /// which the voxels of each line start, from 0, as Ray::cells() counts them.
    virtual std::unique_ptr<SystemMatrix> build(std::span<const Pair> pairs,
                                                std::span<const std::uint32_t> row_start) = 0;

    /// Bytes of memory that build() may take for all matrices that exist at the same time.
    [[nodiscard]] virtual std::uint64_t matrix_budget() const = 0;
    /// The matrices are in the memory of a device rather than in that of the host.
    [[nodiscard]] virtual bool on_device() const { return false; }
    /// The most bytes that a matrix takes, also while it is built.
    [[nodiscard]] virtual std::uint64_t matrix_bytes(std::uint64_t lines, std::uint64_t nonzeros) const = 0;
};

/// Every matrix of a subset but the last has a multiple of this number of lines, so that sums do not depend
/// on how the lines are divided into matrices.
inline constexpr std::size_t matrix_step = 16'384;
/// Most nonzeros of one matrix: offsets have 32 bits, and those of cuSPARSE are signed.
inline constexpr std::uint64_t max_nonzeros = 1U << 30U;

/// Bytes of the CPU projector besides its matrices.
std::uint64_t host_projector_bytes(const Grid& grid);
/// A projector that computes on the threads of the pool, which must outlive it. The sums do not depend on the
/// number of threads: they are taken over fixed shares of the lines and added up in a fixed order.
std::unique_ptr<Projector> make_host_projector(const Grid& grid, const config::LineGeometry& geometry,
                                               net::WorkerPool& pool, std::uint64_t matrix_budget);

}  // namespace petacq::image
