#include "tools/petcal/estimate/flood_peaks.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "tools/petcal/estimate/flood_image.hpp"

namespace petacq::petcal {

namespace {

/// The top of the parabola through three neighbours, from -0.5 to 0.5.
double top_of(double before, double at, double after) {
    const double curvature = before - 2 * at + after;
    return curvature < 0 ? std::clamp((before - after) / (2 * curvature), -0.5, 0.5) : 0;
}

}  // namespace

FloodPeaks flood_peaks(const FloodShape& shape, std::span<const std::uint32_t> flood) {
    FloodPeaks found;
    const std::size_t n = shape.size;
    const FloodImage counts(flood.begin(), flood.end());
    const double total = std::accumulate(counts.begin(), counts.end(), 0.0);
    if (total <= 0) return found;
    found.pitch = flood_pitch(shape, flood);
    const FloodPoint narrow{std::max(0.6, 0.2 * found.pitch.x), std::max(0.6, 0.2 * found.pitch.y)};
    const FloodImage fine = smoothed(counts, n, narrow);
    const FloodImage coarse = smoothed(counts, n, {0.5 * found.pitch.x, 0.5 * found.pitch.y});
    const double mean = total / (found.pitch.x * shape.columns * found.pitch.y * shape.rows);
    constexpr double floor = 0.03;  // of the mean: where there is next to nothing, there is no peak
    FloodImage height(counts.size());
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
