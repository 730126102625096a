// The system matrix, in pieces, and the products with it that EM needs. One interface for the CPU and CUDA.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpu/host/worker_pool.hpp"
#include "tools/petlm/image/grid.hpp"

namespace petacq::image {

/// Rows of the matrix A in CSR: A[line][voxel] is the length in mm of the line in the voxel. Belongs to the
/// projector that built it, which outlives it.
class SystemMatrix {
  public:
    SystemMatrix() = default;
    virtual ~SystemMatrix() = default;
    SystemMatrix(const SystemMatrix&) = delete;
    SystemMatrix& operator=(const SystemMatrix&) = delete;

    /// lines = A x, x the projector's image.
    virtual void forward(std::span<float> lines) = 0;
    /// Adds A' lines to the projector's sums.
    virtual void back(std::span<const float> lines) = 0;
};

/// The memory of a device is too short, now: others may hold some of it.
class DeviceMemoryError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// Holds an image and sums over it, where its matrices compute. One caller at a time; throws
/// std::runtime_error when the device fails, DeviceMemoryError of these when its memory does not suffice.
class Projector {
  public:
    Projector() = default;
    virtual ~Projector() = default;
    Projector(const Projector&) = delete;
    Projector& operator=(const Projector&) = delete;

    virtual void set_image(std::span<const float> image) = 0;
    virtual void clear_sums() = 0;
    virtual void read_sums(std::span<float> sums) = 0;
    /// Matrix of these lines. `row_start` has one number more than there are lines: where the voxels of each
    /// begin, from 0, as Ray::cells() counts them.
    virtual std::unique_ptr<SystemMatrix> build(std::span<const Pair> pairs,
                                                std::span<const std::uint32_t> row_start) = 0;

    /// Bytes of memory that build() may take for all matrices that live at a time.
    [[nodiscard]] virtual std::uint64_t matrix_budget() const = 0;
    /// The matrices live in the memory of a device rather than in that of the host.
    [[nodiscard]] virtual bool on_device() const { return false; }
    /// Bytes that a matrix takes at most, while it is built as well.
    [[nodiscard]] virtual std::uint64_t matrix_bytes(std::uint64_t lines, std::uint64_t nonzeros) const = 0;
};

/// Every matrix of a subset but the last has a multiple of so many lines: then sums do not depend on how
/// lines are cut into matrices.
inline constexpr std::size_t matrix_step = 16'384;
/// Most nonzeros of one matrix: offsets are 32 bits, and cuSPARSE's are signed.
inline constexpr std::uint64_t most_nonzeros = 1U << 30U;

/// Bytes of the CPU's projector besides its matrices.
std::uint64_t host_projector_bytes(const Grid& grid);
/// Threads of the pool compute, which outlives it. The sums do not depend on their number: they are taken
/// over fixed shares of the lines and added up in a fixed order.
std::unique_ptr<Projector> make_host_projector(const Grid& grid, const std::vector<Point>& points,
                                               gpu::WorkerPool& pool, std::uint64_t matrix_budget);

}  // namespace petacq::image
