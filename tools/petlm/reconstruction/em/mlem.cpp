#include "tools/petlm/reconstruction/em/mlem.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "config/base/seconds_since.hpp"
#include "tools/petlm/reconstruction/projector/for_each_on.hpp"
#include "tools/petlm/reconstruction/projector/gaussian.hpp"

namespace petacq::image {
namespace {

constexpr std::size_t piece_of_voxels = 1U << 15U;

class Em {
  public:
    Em(Projector& projector, const Grid& grid, const Lines& lines, std::span<const float> sensitivity,
       net::WorkerPool& pool, const EmOptions& options)
        : projector_(projector),
          grid_(grid),
          lines_(lines),
          pool_(pool),
          psf_mm_(options.psf_mm),
          subsets_(lines.subset_start.size() - 1),
          scale_(sensitivity.begin(), sensitivity.end()),
          sums_(grid.voxels()) {
        projector_.use(lines.rows());
        blur(scale_, grid, psf_mm_, pool);
        const float largest = scale_.empty() ? 0 : *std::max_element(scale_.begin(), scale_.end());
        const float least = static_cast<float>(options.min_sensitivity) * largest;
        const double factor = options.share / static_cast<double>(subsets_);
        double all = 0;
        for (float& value : scale_) {
            value = value > least ? static_cast<float>(value * factor) : 0;
            all += value;
        }
        const double prompts = std::accumulate(lines.prompts.begin(), lines.prompts.end(), 0.0);
        const double value = all > 0 ? prompts / all / static_cast<double>(subsets_) : 0;
        result_.image.assign(grid.voxels(), 0);
        for (std::size_t i = 0; i < scale_.size(); ++i)
            if (scale_[i] > 0) result_.image[i] = static_cast<float>(value);
    }

    EmResult run(const EmOptions& options) {
        const bool all_at_end = options.end_with_all_lines && subsets_ > 1;
        const std::uint64_t steps = std::uint64_t{options.iterations} * subsets_ + (all_at_end ? 1 : 0);
        for (std::uint32_t iteration = 0; iteration < options.iterations; ++iteration) {
            double likelihood = 0;
            result_.outside = 0;
            for (std::size_t subset = 0; subset < subsets_; ++subset) {
                likelihood += compare(subset, subset + 1, sums_);
                update(1);
                if (options.progress) options.progress(iteration * subsets_ + subset + 1, steps);
            }
            result_.log_likelihood.push_back(likelihood);
        }
        if (subsets_ == 1) result_.log_likelihood.push_back(compare(0, 1, {}));
        if (all_at_end) {
            result_.outside = 0;
            compare(0, subsets_, sums_);
            update(static_cast<float>(subsets_));
            if (options.progress) options.progress(steps, steps);
        }
        return std::move(result_);
    }

  private:
    /// Projects the image along the lines of the subsets begin..end and, unless `back` is empty,
    /// back-projects the factors by which EM multiplies it. Returns their share of the likelihood.
    double compare(std::size_t begin_subset, std::size_t end_subset, std::span<float> back) {
        const auto start = std::chrono::steady_clock::now();
        std::vector<float> blurred;
        if (psf_mm_ > 0) {
            blurred = result_.image;
            blur(blurred, grid_, psf_mm_, pool_);
        }
        const Compared compared =
            projector_.compare(psf_mm_ > 0 ? blurred : result_.image, lines_.subset_start[begin_subset],
                               lines_.subset_start[end_subset], back);
        if (!back.empty()) {
            result_.outside += static_cast<std::uint64_t>(std::llround(compared.outside));
            blur(sums_, grid_, psf_mm_, pool_);
        }
        // Each piece is added up by one thread, and the pieces in their order.
        std::vector<double> expected((scale_.size() + piece_of_voxels - 1) / piece_of_voxels);
        for_each_piece(pool_, scale_.size(), piece_of_voxels, [&](std::size_t begin, std::size_t end) {
            double sum = 0;
            for (std::size_t i = begin; i < end; ++i)
                sum += static_cast<double>(scale_[i]) * result_.image[i];
            expected[begin / piece_of_voxels] = sum;
        });
        result_.projection_s += config::seconds_since(start);
        return compared.log_likelihood - static_cast<double>(end_subset - begin_subset) *
                                             std::accumulate(expected.begin(), expected.end(), 0.0);
    }

    /// By the sums over the lines of so many subsets.
    void update(float subsets) {
        for_each_piece(pool_, scale_.size(), piece_of_voxels, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i)
                result_.image[i] = scale_[i] > 0 ? result_.image[i] * sums_[i] / (subsets * scale_[i]) : 0;
        });
    }

    Projector& projector_;
    const Grid& grid_;
    const Lines& lines_;
    net::WorkerPool& pool_;
    double psf_mm_;
    std::size_t subsets_;
    std::vector<float> scale_;  // [voxel] sensitivity of a subset; 0 for voxels without value
    std::vector<float> sums_;   // [voxel]
    EmResult result_;
};

}  // namespace

EmResult reconstruct(Projector& projector, const Grid& grid, const Lines& lines,
                     std::span<const float> sensitivity, net::WorkerPool& pool, const EmOptions& options) {
    return Em(projector, grid, lines, sensitivity, pool, options).run(options);
}

}  // namespace petacq::image
