#include "tools/petlm/reconstruction/em/matrix_pieces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <string>

#include "config/base/seconds_since.hpp"
#include "gpu/device_memory_error.hpp"
#include "tools/petlm/reconstruction/projector/for_each_on.hpp"
#include "tools/petlm/reconstruction/projector/ray.hpp"

namespace petacq::image {

MatrixPieces::MatrixPieces(Projector& projector, const Grid& grid, const config::LineGeometry& geometry,
                           const Lines& lines, net::WorkerPool& pool)
    : projector_(projector), lines_(lines), cells_(lines.pairs.size()) {
    const Box box = Box::of(grid);
    for_each_piece(pool, cells_.size(), matrix_step, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            const Pair pair = lines.pairs[i];
            cells_[i] = static_cast<std::uint16_t>(Ray(box, geometry.ends(pair.a, pair.b)).cells());
        }
    });

    const std::uint64_t budget = projector.matrix_budget();
    for (std::size_t subset = 0; subset + 1 < lines.subset_start.size(); ++subset) {
        first_.push_back(pieces_.size());
        const std::size_t end = lines.subset_start[subset + 1];
        std::size_t begin = lines.subset_start[subset];
        std::uint64_t nonzeros = 0;
        for (std::size_t at = begin; at < end;) {
            const std::size_t step = std::min(end, at + matrix_step);
            const auto cell = [&](std::size_t i) { return cells_.begin() + static_cast<std::ptrdiff_t>(i); };
            const auto more = std::accumulate(cell(at), cell(step), std::uint64_t{0});
            if (projector.matrix_bytes(step - at, more) > budget) {
                const std::string found =
                    fmt::format("the smallest piece of the system matrix takes {} MB; {} MB are available",
                                projector.matrix_bytes(step - at, more) / 1'000'000 + 1, budget / 1'000'000);
                if (projector.on_device()) {
                    throw gpu::DeviceMemoryError(
                        fmt::format("memory of the GPU: {}: choose larger voxels, or --backend cpu", found));
                }
                throw std::invalid_argument(found + ": allow more memory, or choose larger voxels");
            }
            if (at > begin && (projector.matrix_bytes(step - begin, nonzeros + more) > budget ||
                               nonzeros + more > max_nonzeros)) {
                pieces_.push_back({begin, at});
                bytes_ += projector.matrix_bytes(at - begin, nonzeros);
                begin = at;
                nonzeros = 0;
            }
            nonzeros += more;
            at = step;
        }
        if (begin < end) {
            pieces_.push_back({begin, end});
            bytes_ += projector.matrix_bytes(end - begin, nonzeros);
        }
    }
    first_.push_back(pieces_.size());
    kept_ = bytes_ <= budget;
    matrices_.resize(pieces_.size());
}

std::uint64_t MatrixPieces::nonzeros() const {
    return std::accumulate(cells_.begin(), cells_.end(), std::uint64_t{0});
}

SystemMatrix& MatrixPieces::matrix(const LineRange& piece) {
    const auto index = static_cast<std::size_t>(&piece - pieces_.data());
    if (matrices_[index]) return *matrices_[index];
    if (!kept_) matrices_[latest_].reset();
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::uint32_t> row_start(piece.end - piece.begin + 1);
    for (std::size_t i = piece.begin; i < piece.end; ++i)
        row_start[i - piece.begin + 1] = row_start[i - piece.begin] + cells_[i];
    matrices_[index] =
        projector_.build(std::span(lines_.pairs).subspan(piece.begin, piece.end - piece.begin), row_start);
    latest_ = index;
    build_s_ += config::seconds_since(start);
    return *matrices_[index];
}

}  // namespace petacq::image
