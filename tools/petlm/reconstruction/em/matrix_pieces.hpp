// The system matrix of all lines, divided into pieces that fit into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "net/base/worker_pool.hpp"
#include "tools/petlm/reconstruction/em/lines.hpp"
#include "tools/petlm/reconstruction/projector/projector.hpp"

namespace petacq::image {

/// Each piece holds consecutive lines of one subset. If all pieces fit the budget together, each is built
/// once and kept; otherwise only one exists at a time. Not thread-safe.
class MatrixPieces {
  public:
    /// The arguments must outlive it. If the smallest piece does not fit, throws std::invalid_argument, or
    /// gpu::DeviceMemoryError for a projector on a device.
    MatrixPieces(Projector& projector, const Grid& grid, const config::LineGeometry& geometry,
                 const Lines& lines, net::WorkerPool& pool);

    struct LineRange {
        std::size_t begin;  ///< lines
        std::size_t end;
    };
    [[nodiscard]] std::span<const LineRange> of_subset(std::size_t subset) const {
        return std::span(pieces_).subspan(first_[subset], first_[subset + 1] - first_[subset]);
    }
    /// Valid until the next call, unless all are kept.
    SystemMatrix& matrix(const LineRange& piece);

    [[nodiscard]] bool kept() const { return kept_; }
    /// Sum over all matrices.
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    [[nodiscard]] std::uint64_t nonzeros() const;
    [[nodiscard]] double build_seconds() const { return build_s_; }

  private:
    Projector& projector_;
    const Lines& lines_;
    std::vector<std::uint16_t> cells_;  // [line] number of nonzeros
    std::vector<LineRange> pieces_;
    std::vector<std::size_t> first_;                       // [subset] first piece, and the end
    std::vector<std::unique_ptr<SystemMatrix>> matrices_;  // [piece]
    std::size_t latest_ = 0;
    std::uint64_t bytes_ = 0;
    bool kept_ = false;
    double build_s_ = 0;
};

}  // namespace petacq::image
