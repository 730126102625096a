#include "tools/petcal/derive/flood_peaks.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace petacq::petcal {

namespace {

using Image = std::vector<double>;

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

FloodPoint pitch_of(const FloodShape& shape, std::span<const std::uint32_t> flood) {
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
Image blurred(const Image& in, std::size_t size, double sigma, bool along_x) {
    const std::vector<double> kernel = gauss_kernel(sigma);
    const auto reach = static_cast<std::ptrdiff_t>(kernel.size() / 2);
    const auto n = static_cast<std::ptrdiff_t>(size);
    const std::ptrdiff_t step = along_x ? 1 : n;
    const std::ptrdiff_t other = along_x ? n : 1;
    Image out(in.size());
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

Image smoothed(const Image& in, std::size_t size, const FloodPoint& sigma) {
    return blurred(blurred(in, size, sigma.x, true), size, sigma.y, false);
}

/// The top of the parabola through three neighbours, from -0.5 to 0.5.
double top_of(double before, double at, double after) {
    const double curvature = before - 2 * at + after;
    return curvature < 0 ? std::clamp((before - after) / (2 * curvature), -0.5, 0.5) : 0;
}

}  // namespace

FloodPeaks flood_peaks(const FloodShape& shape, std::span<const std::uint32_t> flood) {
    FloodPeaks found;
    const std::size_t n = shape.size;
    const Image counts(flood.begin(), flood.end());
    const double total = std::accumulate(counts.begin(), counts.end(), 0.0);
    if (total <= 0) return found;
    found.pitch = pitch_of(shape, flood);
    const FloodPoint narrow{std::max(0.6, 0.2 * found.pitch.x), std::max(0.6, 0.2 * found.pitch.y)};
    const Image fine = smoothed(counts, n, narrow);
    const Image coarse = smoothed(counts, n, {0.5 * found.pitch.x, 0.5 * found.pitch.y});
    const double mean = total / (found.pitch.x * shape.columns * found.pitch.y * shape.rows);
    constexpr double floor = 0.03;  // of the mean: where there is next to nothing, there is no peak
    Image height(counts.size());
    for (std::size_t i = 0; i < height.size(); ++i)
        height[i] = fine[i] / (coarse[i] + floor * mean) - 1;

    // Smoothing with a Gaussian averages over this many positions.
    const double area = 4 * std::numbers::pi * narrow.x * narrow.y;
    constexpr double sigmas = 2;
    for (std::size_t y = 1; y + 1 < n; ++y) {
        for (std::size_t x = 1; x + 1 < n; ++x) {
            const std::size_t at = x + y * n;
            const double h = height[at];
            if (h <= 0.02) continue;
            const double noise = 1 / std::sqrt(area * (coarse[at] + floor * mean));
            if (h < sigmas * noise) continue;
            // Of equal neighbours the last one is the peak.
            const bool top = h >= height[at - n - 1] && h >= height[at - n] && h >= height[at - n + 1] &&
                             h >= height[at - 1] && h > height[at + 1] && h > height[at + n - 1] &&
                             h > height[at + n] && h > height[at + n + 1];
            if (!top) continue;
            const double dx = top_of(height[at - 1], h, height[at + 1]);
            const double dy = top_of(height[at - n], h, height[at + n]);
            found.peaks.push_back({{static_cast<double>(x) + dx, static_cast<double>(y) + dy}, h});
        }
    }
    // Of noise there may be any number.
    const std::size_t most = std::size_t{3} * shape.crystals();
    const auto higher = [](const FloodPeak& a, const FloodPeak& b) { return a.height > b.height; };
    std::sort(found.peaks.begin(), found.peaks.end(), higher);
    if (found.peaks.size() > most) found.peaks.resize(most);
    return found;
}

}  // namespace petacq::petcal
