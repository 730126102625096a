#include "tools/petlm/plot/resolution.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "config/base/constants.hpp"
#include "tools/petcal/estimate/photopeak.hpp"

namespace petacq::petlm {
namespace {

constexpr std::uint64_t least_counts = 500;  // the width of a peak is then known to some 5 %
constexpr std::size_t most_modules = 1024;
constexpr std::uint32_t most_bins = 401;
constexpr double least_bin_ps = 5;

double sum_between(std::span<const std::uint64_t> counts, double from, double to) {
    double sum = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
        const double at = static_cast<double>(i) + 0.5;
        if (at >= from && at < to) sum += static_cast<double>(counts[i]);
    }
    return sum;
}

/// A Gaussian in a window of `reach` standard deviations to both sides of its middle.
struct Moments {
    double mean = 0;
    double variance = 0;
    double fourth = 0;  ///< central
    double counts = 0;
};

/// Each bin shares its counts evenly, so that the window may end within it.
Moments moments_of(std::span<const std::uint64_t> counts, double level, double from, double to) {
    const auto shares = [&](const auto& use) {
        for (std::size_t i = 0; i < counts.size(); ++i) {
            const double low = std::max(from, static_cast<double>(i));
            const double high = std::min(to, static_cast<double>(i + 1));
            if (high > low) use((low + high) / 2, (static_cast<double>(counts[i]) - level) * (high - low));
        }
    };
    Moments m;
    shares([&](double at, double n) {
        m.counts += n;
        m.mean += n * at;
    });
    if (!(m.counts > 0)) return m;
    m.mean /= m.counts;
    shares([&](double at, double n) {
        const double square = (at - m.mean) * (at - m.mean);
        m.variance += n * square / m.counts;
        m.fourth += n * square * square / m.counts;
    });
    return m;
}

/// The mean counts per bin far from the peak: of what is flat, such as randoms.
double level_beyond(std::span<const std::uint64_t> counts, double middle, double sigma) {
    constexpr double far = 5;
    constexpr std::size_t enough = 8;
    double sum = 0;
    std::size_t bins = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
        if (std::abs(static_cast<double>(i) + 0.5 - middle) < far * sigma) continue;
        sum += static_cast<double>(counts[i]);
        ++bins;
    }
    return bins >= enough ? sum / static_cast<double>(bins) : 0;
}

}  // namespace

std::vector<std::uint32_t> modules_of_crystals(const config::Geometry& g) {
    std::vector<std::uint32_t> bdm_of(g.crystal_count());
    for (std::uint32_t unit = 0; unit < g.unit_count(); ++unit) {
        for (std::uint32_t local = 0; local < g.crystals_of_unit(unit); ++local)
            bdm_of[g.crystal(unit / g.du_count, unit % g.du_count, local)] = unit / g.du_count;
    }
    return bdm_of;
}

std::optional<Peak> photopeak_of(std::span<const std::uint64_t> spectrum, double bin_keV) {
    constexpr double annihilation_keV = 511;
    const double near = annihilation_keV / bin_keV;
    if (sum_between(spectrum, 0.85 * near, 1.15 * near) < least_counts) return std::nullopt;
    const std::uint64_t most = *std::max_element(spectrum.begin(), spectrum.end());
    const std::uint64_t divisor = most / UINT32_MAX + 1;
    std::vector<std::uint32_t> counts;
    for (const std::uint64_t n : spectrum)
        counts.push_back(static_cast<std::uint32_t>(n / divisor));
    const auto peak = petcal::fit_photopeak(counts, near);
    if (!peak) return std::nullopt;
    const double keV = config::fwhm_per_sigma * bin_keV;
    return Peak{peak->place * bin_keV, peak->sigma * keV,
                peak->sigma_error * keV / std::sqrt(static_cast<double>(divisor))};
}

std::optional<Peak> gaussian_of(std::span<const std::uint64_t> counts) {
    if (sum_between(counts, 0, static_cast<double>(counts.size())) < least_counts) return std::nullopt;
    // The first guess: the bins around the highest one with more than half of its counts above the level.
    const auto highest = std::max_element(counts.begin(), counts.end());
    const double median = [&] {
        std::vector<std::uint64_t> sorted(counts.begin(), counts.end());
        std::sort(sorted.begin(), sorted.end());
        return static_cast<double>(sorted[sorted.size() / 10]);
    }();
    const double half = (static_cast<double>(*highest) + median) / 2;
    const auto above = [half](std::uint64_t n) { return static_cast<double>(n) > half; };
    const auto first = std::find_if(counts.begin(), counts.end(), above);
    const auto last = std::find_if(counts.rbegin(), counts.rend(), above).base();
    double middle =
        (static_cast<double>(first - counts.begin()) + static_cast<double>(last - counts.begin())) / 2;
    double sigma = std::max(1.0, static_cast<double>(last - first) / config::fwhm_per_sigma);
    // A Gaussian that is cut off at 2.5 standard deviations has this share of its variance. The width of the
    // window follows the result, which makes the error of the variance larger by this factor.
    constexpr double reach = 2.5;
    constexpr double share = 0.9113;
    constexpr double growth = 1.35;
    Moments m;
    constexpr int rounds = 60;
    for (int round = 0; round < rounds; ++round) {
        const double level = level_beyond(counts, middle, sigma);
        m = moments_of(counts, level, middle - reach * sigma, middle + reach * sigma);
        if (!(m.counts >= least_counts && m.variance > 0)) return std::nullopt;
        middle = m.mean;
        sigma = std::sqrt(m.variance / share);
    }
    // Wider peaks are cut off by the window of coincidences.
    const double end = static_cast<double>(counts.size());
    if (middle - reach * sigma < 0 || middle + reach * sigma > end) return std::nullopt;
    const double variance = sigma * sigma - 1.0 / 12;  // less the width of a bin
    if (!(variance > 0.25)) return std::nullopt;       // narrower than a bin
    const double error =
        growth / share * std::sqrt(std::max(0.0, m.fourth - m.variance * m.variance) / m.counts);
    const double fwhm = config::fwhm_per_sigma * std::sqrt(variance);
    return Peak{middle, fwhm, fwhm * error / (2 * variance)};
}

TimeWidths::TimeWidths(const config::Scanner& scanner, const config::DepthOfInteraction& depth,
                       SeenSource source, std::uint32_t window)
    : lines_(scanner, depth),
      source_(std::move(source)),
      tick_ps_(scanner.tick_ps),
      bin_ps_(std::max({least_bin_ps, tick_ps_, (2.0 * window + 1) * tick_ps_ / most_bins})),
      bins_(static_cast<std::uint32_t>((2.0 * window + 1) * tick_ps_ / bin_ps_)),
      modules_(scanner.geometry.bdm_count <= most_modules ? scanner.geometry.bdm_count : 0),
      bdm_of_(modules_of_crystals(scanner.geometry)) {}

TimeWidths::Difference TimeWidths::of(std::uint32_t crystal_a, std::uint32_t crystal_b, double ticks) const {
    const config::LineEnds ends = lines_.ends(crystal_a, crystal_b);
    config::Vector3 along{};
    double squares = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        along[axis] = ends.b[axis] - ends.a[axis];
        squares += along[axis] * along[axis];
    }
    if (!(squares > 0)) return {};
    const double length = std::sqrt(squares);
    double towards_b = 0;  // of the source, from the middle of the line
    for (std::size_t axis = 0; axis < 3; ++axis) {
        along[axis] /= length;
        towards_b += (source_.centre[axis] - (ends.a[axis] + ends.b[axis]) / 2) * along[axis];
    }
    constexpr double ps_per_mm = 2 / config::light_mm_per_ps;
    const double ps = ticks * tick_ps_ + towards_b * ps_per_mm;
    return {ps, ps_per_mm * ps_per_mm * source_.variance_along(along)};
}

std::optional<Peak> time_peak_of(const TimeCounts& counts, double bin_ps) {
    const auto peak = gaussian_of(counts.bins);
    if (!peak || counts.pairs == 0) return std::nullopt;
    const double all = peak->fwhm * bin_ps;
    const double source = config::fwhm_per_sigma * config::fwhm_per_sigma * counts.source_ps2 /
                          static_cast<double>(counts.pairs);
    const double squares = all * all - source;
    if (squares < all * all / 2) return std::nullopt;
    const double fwhm = std::sqrt(squares);
    const double middle = (peak->place - static_cast<double>(counts.bins.size()) / 2) * bin_ps;
    return Peak{middle, fwhm, peak->error * bin_ps * all / fwhm};
}

}  // namespace petacq::petlm
