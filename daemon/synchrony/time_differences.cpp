#include "daemon/synchrony/time_differences.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace petacq::daemon {

/// Chernoff's bound of the tail of a Poisson distribution.
double certainty(double count, double expected) {
    if (count <= expected) return 0;
    if (expected <= 0) expected = 1e-9;
    return count * std::log(count / expected) - count + expected;
}

double LagHistogram::mean() const {
    const std::uint64_t all = std::accumulate(bins_, bins_ + scale_.bins(), std::uint64_t{0});
    return static_cast<double>(all) / static_cast<double>(scale_.bins());
}

std::vector<Peak> LagHistogram::peaks(double min_certainty, std::size_t most) const {
    constexpr std::uint32_t fewest = 10;  // pairs
    constexpr double min_part = 0.1;      // of the highest peak: less may be its tail
    constexpr std::size_t width = SearchScale::bins_per_peak;
    const std::size_t n = scale_.bins();
    std::vector<Peak> found;
    if (n < width) return found;
    const double each = mean();
    const double randoms = each * static_cast<double>(width);
    // The places at which a peak may begin.
    struct PeakPlace {
        std::size_t first;
        std::uint32_t pairs;
    };
    std::vector<PeakPlace> places;
    std::uint32_t enough = fewest;  // the more, the more certain
    std::uint32_t sum = std::accumulate(bins_, bins_ + width, 0U);
    for (std::size_t i = 0; i + width <= n; ++i) {
        if (i > 0) sum += bins_[i + width - 1] - bins_[i - 1];
        if (sum < enough) continue;
        if (certainty(sum, randoms) < min_certainty) {
            enough = sum + 1;
        } else {
            places.push_back({i, sum});
        }
    }
    while (found.size() < most && !places.empty()) {
        const std::size_t first =
            std::max_element(places.begin(), places.end(), [](PeakPlace a, PeakPlace b) {
                return a.pairs < b.pairs;
            })->first;
        Peak peak = refined(first, each);
        if (!found.empty() && peak.excess < min_part * found.front().excess) break;
        found.push_back(peak);
        // Places close to this peak belong to it and are no further peaks.
        std::erase_if(places, [&](const PeakPlace& place) {
            return place.first + 2 * width >= first && place.first < first + 2 * width;
        });
    }
    return found;
}

/// The mean of what exceeds the randoms, in a range around it.
Peak LagHistogram::refined(std::size_t first, double mean) const {
    constexpr auto width = static_cast<std::ptrdiff_t>(SearchScale::bins_per_peak);
    const auto n = static_cast<std::ptrdiff_t>(scale_.bins());
    const auto lag_of = [&](std::ptrdiff_t i) {
        return (static_cast<double>(i) + 0.5) * static_cast<double>(scale_.bin) -
               static_cast<double>(scale_.reach) - 0.5;
    };
    double centre = static_cast<double>(first) + 0.5 * (width - 1);
    Peak peak;
    for (int round = 0; round < 4; ++round) {
        const auto middle = static_cast<std::ptrdiff_t>(std::lround(centre));
        const std::ptrdiff_t from = std::max<std::ptrdiff_t>(middle - width, 0);
        const std::ptrdiff_t to = std::min(middle + width, n - 1);
        double all = 0;
        double excess = 0;
        double moment = 0;
        double square = 0;
        for (std::ptrdiff_t i = from; i <= to; ++i) {
            const double at = static_cast<double>(i) - centre;
            all += bins_[i];
            excess += bins_[i] - mean;
            moment += (bins_[i] - mean) * at;
            square += bins_[i] * at * at;
        }
        if (excess <= 0) break;
        peak.excess = excess;
        peak.randoms = mean * static_cast<double>(to - from + 1);
        peak.error = std::sqrt(square) / excess * static_cast<double>(scale_.bin);
        const double step = std::clamp(moment / excess, -1.0 * width, 1.0 * width);
        centre = std::clamp(centre + step, 0.0, static_cast<double>(n - 1));
    }
    peak.lag = lag_of(0) + centre * static_cast<double>(scale_.bin);
    return peak;
}

double LagHistogram::excess_at(double lag) const {
    constexpr auto half = static_cast<std::ptrdiff_t>(SearchScale::bins_per_peak) / 2;
    const auto n = static_cast<std::ptrdiff_t>(scale_.bins());
    const auto middle = static_cast<std::ptrdiff_t>(position(std::llround(lag)));
    const std::ptrdiff_t from = std::clamp<std::ptrdiff_t>(middle - half, 0, n);
    const std::ptrdiff_t to = std::clamp<std::ptrdiff_t>(middle + half + 1, from, n);
    return std::accumulate(bins_ + from, bins_ + to, 0.0) - mean() * static_cast<double>(to - from);
}

}  // namespace petacq::daemon
