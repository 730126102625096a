#include "tools/petlm/reconstruction/projector/gaussian.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "config/base/constants.hpp"
#include "tools/petlm/reconstruction/projector/for_each_on.hpp"

namespace petacq::image {
namespace {

/// `weight_of(inside, all)` divides each sum: by the weights of the voxels inside the image, or by all.
template <class WeightOf>
void convolve(std::vector<float>& image, const Grid& grid, double fwhm_mm, net::WorkerPool& pool,
              const WeightOf& weight_of) {
    if (fwhm_mm <= 0) return;
    const double sigma = fwhm_mm / grid.voxel_mm / config::fwhm_per_sigma;
    const auto reach = static_cast<std::ptrdiff_t>(std::ceil(3.5 * sigma));
    std::vector<float> kernel;
    for (std::ptrdiff_t i = -reach; i <= reach; ++i)
        kernel.push_back(static_cast<float>(std::exp(-0.5 * static_cast<double>(i * i) / (sigma * sigma))));

    const float all = std::accumulate(kernel.begin(), kernel.end(), 0.0F);

    std::vector<float> from(image.size());
    const std::array<std::size_t, 3> stride = {1, grid.n[0], std::size_t{grid.n[0]} * grid.n[1]};
    for (std::size_t axis = 0; axis < 3; ++axis) {
        from.swap(image);
        const auto n = static_cast<std::ptrdiff_t>(grid.n[axis]);
        for_each_on(pool, image.size() / grid.n[0], [&](std::size_t row) {
            for (std::size_t i = row * grid.n[0]; i < (row + 1) * grid.n[0]; ++i) {
                const auto at = static_cast<std::ptrdiff_t>(i / stride[axis] % grid.n[axis]);
                float sum = 0;
                float weight = 0;
                for (std::ptrdiff_t k = std::max(-reach, -at); k <= std::min(reach, n - 1 - at); ++k) {
                    const float w = kernel[static_cast<std::size_t>(k + reach)];
                    const auto there =
                        static_cast<std::ptrdiff_t>(i) + k * static_cast<std::ptrdiff_t>(stride[axis]);
                    sum += w * from[static_cast<std::size_t>(there)];
                    weight += w;
                }
                image[i] = sum / weight_of(weight, all);
            }
        });
    }
}

}  // namespace

void smooth(std::vector<float>& image, const Grid& grid, double fwhm_mm, net::WorkerPool& pool) {
    convolve(image, grid, fwhm_mm, pool, [](float inside, float) { return inside; });
}

void blur(std::vector<float>& image, const Grid& grid, double fwhm_mm, net::WorkerPool& pool) {
    convolve(image, grid, fwhm_mm, pool, [](float, float all) { return all; });
}

}  // namespace petacq::image
