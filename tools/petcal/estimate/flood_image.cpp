#include "tools/petcal/estimate/flood_image.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace petacq::petcal {

namespace {

/// The extent of the counts: the width that holds all but one percent of them at either end.
double extent_of(std::span<const double> profile) {
    const double total = std::accumulate(profile.begin(), profile.end(), 0.0);
    const auto place_of = [&](double part) {
        double before = 0;
        for (std::size_t i = 0; i < profile.size(); ++i) {
            if (before + profile[i] >= part * total && profile[i] > 0)
                return static_cast<double>(i) + (part * total - before) / profile[i];
            before += profile[i];
        }
        return static_cast<double>(profile.size());
    };
    return (place_of(0.99) - place_of(0.01)) / 0.98;
}

std::vector<double> gauss_kernel(double sigma) {
    const auto reach = static_cast<int>(std::ceil(4 * sigma));
    std::vector<double> kernel;
    for (int i = -reach; i <= reach; ++i)
        kernel.push_back(std::exp(-i * i / (2 * sigma * sigma)));
    const double sum = std::accumulate(kernel.begin(), kernel.end(), 0.0);
    for (double& k : kernel)
        k /= sum;
    return kernel;
}

/// Convolves along one direction; nothing lies outside the map.
FloodImage blurred(const FloodImage& in, std::size_t size, double sigma, bool along_x) {
    const std::vector<double> kernel = gauss_kernel(sigma);
    const auto reach = static_cast<std::ptrdiff_t>(kernel.size() / 2);
    const auto n = static_cast<std::ptrdiff_t>(size);
    const std::ptrdiff_t step = along_x ? 1 : n;
    const std::ptrdiff_t other = along_x ? n : 1;
    FloodImage out(in.size());
    // The inner loop runs over x in both directions.
    for (std::ptrdiff_t k = -reach; k <= reach; ++k) {
        const double weight = kernel[static_cast<std::size_t>(k + reach)];
        const std::ptrdiff_t from = std::max<std::ptrdiff_t>(0, -k);
        const std::ptrdiff_t to = std::min(n, n - k);
        for (std::ptrdiff_t a = along_x ? 0 : from; a < (along_x ? n : to); ++a) {
            for (std::ptrdiff_t b = along_x ? from : 0; b < (along_x ? to : n); ++b) {
                const std::ptrdiff_t at = along_x ? b * step + a * other : a * step + b * other;
                out[static_cast<std::size_t>(at)] += weight * in[static_cast<std::size_t>(at + k * step)];
            }
        }
    }
    return out;
}

}  // namespace

FloodImage smoothed(const FloodImage& image, std::size_t size, const FloodPoint& sigma) {
    return blurred(blurred(image, size, sigma.x, true), size, sigma.y, false);
}

FloodPoint flood_pitch(const FloodShape& shape, std::span<const std::uint32_t> flood) {
    std::vector<double> along_x(shape.size);
    std::vector<double> along_y(shape.size);
    for (std::size_t y = 0; y < shape.size; ++y) {
        for (std::size_t x = 0; x < shape.size; ++x) {
            along_x[x] += flood[x + y * shape.size];
            along_y[y] += flood[x + y * shape.size];
        }
    }
    return {std::max(1.0, extent_of(along_x) / shape.columns),
            std::max(1.0, extent_of(along_y) / shape.rows)};
}

}  // namespace petacq::petcal
