#include "tools/petlm/reconstruction/em/mlem.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "config/base/seconds_since.hpp"
#include "tools/petlm/reconstruction/em/matrix_pieces.hpp"
#include "tools/petlm/reconstruction/projector/for_each_on.hpp"

namespace petacq::image {
namespace {

constexpr std::size_t piece_of_lines = 1U << 14U;
constexpr std::size_t piece_of_voxels = 1U << 15U;

/// Adds up the results of the pieces of a loop in their order, whichever thread computed them.
class OrderedSum {
  public:
    OrderedSum(std::size_t count, std::size_t size) : size_(size), parts_((count + size - 1) / size) {}
    double& part(std::size_t begin) { return parts_[begin / size_]; }
    [[nodiscard]] double sum() const { return std::accumulate(parts_.begin(), parts_.end(), 0.0); }

  private:
    std::size_t size_;
    std::vector<double> parts_;
};

class Em {
  public:
    Em(Projector& projector, const Grid& grid, const config::LineGeometry& geometry, const Lines& lines,
       std::span<const float> sensitivity, net::WorkerPool& pool, const EmOptions& options)
        : projector_(projector),
          lines_(lines),
          pool_(pool),
          subsets_(lines.subset_start.size() - 1),
          pieces_(projector, grid, geometry, lines, pool),
          scale_(grid.voxels()),
          sums_(grid.voxels()) {
        const float largest =
            sensitivity.empty() ? 0 : *std::max_element(sensitivity.begin(), sensitivity.end());
        const float least = static_cast<float>(options.min_sensitivity) * largest;
        const double factor = options.share / static_cast<double>(subsets_);
        double all = 0;
        for (std::size_t i = 0; i < scale_.size(); ++i) {
            if (sensitivity[i] <= least) continue;
            scale_[i] = static_cast<float>(sensitivity[i] * factor);
            all += scale_[i];
        }
        const double prompts = std::accumulate(lines.prompts.begin(), lines.prompts.end(), 0.0);
        const double value = all > 0 ? prompts / all / static_cast<double>(subsets_) : 0;
        result_.image.assign(grid.voxels(), 0);
        for (std::size_t i = 0; i < scale_.size(); ++i)
            if (scale_[i] > 0) result_.image[i] = static_cast<float>(value);
    }

    EmResult run(const EmOptions& options) {
        const std::uint64_t steps = std::uint64_t{options.iterations} * subsets_;
        const auto start = std::chrono::steady_clock::now();
        for (std::uint32_t iteration = 0; iteration < options.iterations; ++iteration) {
            double likelihood = 0;
            result_.outside = 0;
            for (std::size_t subset = 0; subset < subsets_; ++subset) {
                likelihood += compare(subset, true);
                update();
                if (options.progress) options.progress(iteration * subsets_ + subset + 1, steps);
            }
            result_.log_likelihood.push_back(likelihood);
        }
        if (subsets_ == 1) result_.log_likelihood.push_back(compare(0, false));
        result_.nonzeros = pieces_.nonzeros();
        result_.matrix_bytes = pieces_.bytes();
        result_.matrix_kept = pieces_.kept();
        result_.build_s = pieces_.build_seconds();
        result_.product_s = config::seconds_since(start) - result_.build_s;
        return std::move(result_);
    }

  private:
    /// Projects the image along the lines of a subset and, if asked to, back-projects the factors by which EM
    /// multiplies it. Returns the subset's share of the likelihood.
    double compare(std::size_t subset, bool back) {
        projector_.set_image(result_.image);
        if (back) projector_.clear_sums();
        double likelihood = 0;
        for (const auto& piece : pieces_.of_subset(subset)) {
            SystemMatrix& matrix = pieces_.matrix(piece);
            const std::size_t count = piece.end - piece.begin;
            values_.resize(count);
            matrix.forward(values_);
            OrderedSum logs(count, piece_of_lines);
            OrderedSum missed(count, piece_of_lines);
            for_each_piece(pool_, count, piece_of_lines, [&](std::size_t begin, std::size_t end) {
                double sum = 0;
                double outside = 0;
                for (std::size_t i = begin; i < end; ++i) {
                    const float prompts = lines_.prompts[piece.begin + i];
                    const float expected = values_[i] + lines_.additive[piece.begin + i];
                    if (!(values_[i] > 0)) outside += prompts;
                    if (!(expected > 0)) {
                        values_[i] = 0;
                        continue;
                    }
                    sum += prompts * std::log(static_cast<double>(expected));
                    values_[i] = prompts / expected;
                }
                logs.part(begin) = sum;
                missed.part(begin) = outside;
            });
            likelihood += logs.sum();
            if (back) {
                result_.outside += static_cast<std::uint64_t>(std::llround(missed.sum()));
                matrix.back(values_);
            }
        }
        OrderedSum expected(scale_.size(), piece_of_voxels);
        for_each_piece(pool_, scale_.size(), piece_of_voxels, [&](std::size_t begin, std::size_t end) {
            double sum = 0;
            for (std::size_t i = begin; i < end; ++i)
                sum += static_cast<double>(scale_[i]) * result_.image[i];
            expected.part(begin) = sum;
        });
        return likelihood - expected.sum();
    }

    void update() {
        projector_.read_sums(sums_);
        for_each_piece(pool_, scale_.size(), piece_of_voxels, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i)
                result_.image[i] = scale_[i] > 0 ? result_.image[i] * sums_[i] / scale_[i] : 0;
        });
    }

    Projector& projector_;
    const Lines& lines_;
    net::WorkerPool& pool_;
    std::size_t subsets_;
    MatrixPieces pieces_;
    std::vector<float> scale_;   // [voxel] sensitivity of a subset; 0 for voxels without value
    std::vector<float> sums_;    // [voxel]
    std::vector<float> values_;  // [line of a piece]
    EmResult result_;
};

}  // namespace

EmResult reconstruct(Projector& projector, const Grid& grid, const config::LineGeometry& geometry,
                     const Lines& lines, std::span<const float> sensitivity, net::WorkerPool& pool,
                     const EmOptions& options) {
    return Em(projector, grid, geometry, lines, sensitivity, pool, options).run(options);
}

}  // namespace petacq::image
