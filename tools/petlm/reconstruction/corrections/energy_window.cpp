#include "tools/petlm/reconstruction/corrections/energy_window.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <boost/math/tools/minima.hpp>
#include <cmath>
#include <numbers>
#include <span>

#include "config/base/constants.hpp"

namespace petacq::corrections {
namespace {

using config::fwhm_per_sigma;
constexpr std::uint64_t min_count = 100;
constexpr double peak_sigmas = 2.5;  // half the width of the photopeak
constexpr double least_resolution = 0.01;
constexpr double largest_resolution = 0.5;

/// How often each whole keV was found.
struct Spectrum {
    std::span<const std::uint64_t> counts;
    double lower = 0;  ///< keV; those below, or not below `upper`, are not accepted
    double upper = 0;
};

/// Counts per keV at 511 keV of the peak and below it of the step; at 603 keV of the gammas.
using Heights = Eigen::Vector3d;
using Shapes = Eigen::Matrix<double, Eigen::Dynamic, 3>;

/// What the peak, the step and the gammas add to the counts of each keV if their height is 1.
Shapes shapes_of(const Eigen::VectorXd& energies, double resolution) {
    constexpr double gamma = 603;  // keV
    const double sigma = resolution / fwhm_per_sigma * photopeak;
    const double of_gamma = sigma * std::sqrt(gamma / photopeak);
    Shapes out(energies.size(), 3);
    for (Eigen::Index i = 0; i < energies.size(); ++i) {
        const double from_peak = (energies[i] - photopeak) / sigma;
        const double from_gamma = (energies[i] - gamma) / of_gamma;
        out.row(i) << std::exp(-from_peak * from_peak / 2), std::erfc(from_peak / std::numbers::sqrt2) / 2,
            std::exp(-from_gamma * from_gamma / 2);
    }
    return out;
}

/// Least squares of a * x - b, none of x below 0: each of them in turn, given the others.
Heights not_negative(const Eigen::Matrix3d& a, const Heights& b) {
    constexpr int rounds = 500;
    Heights x = Heights::Zero();
    for (int round = 0; round < rounds; ++round) {
        for (Eigen::Index i = 0; i < 3; ++i) {
            const double others = a.row(i).dot(x) - a(i, i) * x[i];
            x[i] = a(i, i) > 0 ? std::max((b[i] - others) / a(i, i), 0.0) : 0;
        }
    }
    return x;
}

/// The part of a spectrum near the peak, each keV weighted by what a fit expects there.
class NearPeak {
  public:
    NearPeak(const Spectrum& spectrum, double resolution, const std::optional<Heights>& expected) {
        constexpr double below = 1.5;  // standard deviations
        constexpr double above = 2;
        const double sigma = resolution / fwhm_per_sigma * photopeak;
        const auto first = static_cast<Eigen::Index>(
            std::ceil(std::max({spectrum.lower, std::floor(photopeak - below * sigma), 0.0})));
        const auto end =
            static_cast<Eigen::Index>(std::min({spectrum.upper, std::ceil(photopeak + above * sigma),
                                                static_cast<double>(spectrum.counts.size())}));
        const Eigen::Index cells = std::max<Eigen::Index>(end - first, 0);
        energies_ = Eigen::VectorXd::LinSpaced(cells, static_cast<double>(first) + 0.5,
                                               static_cast<double>(first + cells) - 0.5);
        counts_.resize(cells);
        for (Eigen::Index i = 0; i < cells; ++i)
            counts_[i] = static_cast<double>(spectrum.counts[static_cast<std::size_t>(first + i)]);
        weights_ = (expected ? Eigen::VectorXd(shapes_of(energies_, resolution) * *expected) : counts_)
                       .cwiseMax(1)
                       .cwiseInverse();
    }
    [[nodiscard]] double counts() const { return counts_.sum(); }
    [[nodiscard]] Heights heights(double resolution) const {
        const Shapes shapes = shapes_of(energies_, resolution);
        return not_negative(shapes.transpose() * weights_.asDiagonal() * shapes,
                            shapes.transpose() * weights_.cwiseProduct(counts_));
    }
    /// The weighted squares of what the best heights leave.
    [[nodiscard]] double mismatch(double resolution) const {
        const Eigen::VectorXd left = counts_ - shapes_of(energies_, resolution) * heights(resolution);
        return left.cwiseAbs2().dot(weights_);
    }

  private:
    Eigen::VectorXd energies_;  ///< keV
    Eigen::VectorXd counts_;
    Eigen::VectorXd weights_;
};

/// The best of some, each a fifth above the one before it: a search from there meets no other minimum.
double first_guess(const NearPeak& near) {
    constexpr double step = 1.2;
    double best = least_resolution;
    double least = near.mismatch(best);
    for (double trial = step * best; trial < largest_resolution; trial *= step) {
        const double mismatch = near.mismatch(trial);
        if (mismatch < least) {
            least = mismatch;
            best = trial;
        }
    }
    return best;
}

/// FWHM / energy at 511 keV; none of too few counts.
std::optional<double> resolution_of(const Spectrum& spectrum) {
    constexpr double enough = 1000;  // counts: an error of 6 %
    constexpr int rounds = 12;
    constexpr int bits = 14;  // of the resolution
    constexpr double most_change = 1.5;
    const NearPeak usual(spectrum, EnergyWindow{}.resolution, std::nullopt);
    double resolution = first_guess(usual);
    Heights expected = usual.heights(resolution);
    for (int round = 0; round < rounds; ++round) {
        const NearPeak near(spectrum, resolution, expected);
        if (near.counts() < enough) return std::nullopt;
        const double last = resolution;
        resolution =
            boost::math::tools::brent_find_minima([&near](double trial) { return near.mismatch(trial); },
                                                  std::max(last / most_change, least_resolution),
                                                  std::min(last * most_change, largest_resolution), bits)
                .first;
        expected = near.heights(resolution);
        if (std::abs(resolution / last - 1) < 1e-3) break;
    }
    return resolution;
}

}  // namespace

double EnergyWindow::below(double limit, double energy) const {
    const double width = resolution / fwhm_per_sigma * std::sqrt(photopeak * std::max(energy, 1e-3));
    return 0.5 * (1 + std::erf((limit - energy) / (width * std::numbers::sqrt2)));
}

double EnergyWindow::photopeak_begins() const {
    return photopeak * (1 - peak_sigmas * resolution / fwhm_per_sigma);
}

EnergyWindow PhotopeakWidth::window(const std::optional<config::Energy>& rule) const {
    EnergyWindow out;
    if (rule) {
        out.lower = rule->filter ? rule->lower_keV : 0;
        out.upper = rule->filter ? rule->upper_keV : 2 * photopeak;
    }
    out.resolution = resolution_of({spectrum_, out.lower, out.upper}).value_or(out.resolution);
    const auto sum = [&](double from, double to) {
        const auto end = std::min(static_cast<std::size_t>(std::max(to, 0.0)), spectrum_.size());
        std::uint64_t counts = 0;
        for (auto i = static_cast<std::size_t>(std::max(from, 0.0)); i < end; ++i)
            counts += spectrum_[i];
        return static_cast<double>(counts);
    };
    const double all = sum(out.lower, out.upper);
    if (all >= min_count) out.low_share = sum(out.lower, out.photopeak_begins()) / all;
    return out;
}

}  // namespace petacq::corrections
