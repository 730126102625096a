#include "tools/petlm/lifetime/fit.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "config/base/constants.hpp"
#include "tools/petlm/lifetime/likelihood.hpp"

namespace petacq::lifetime {
namespace {

using config::fwhm_per_sigma;
constexpr double min_triples = 100;

struct Limits {
    Values low;
    Values high;
    std::array<bool, parameters> fixed{};
};

/// The parameters that may change from here: not those at the end of their range that would leave it.
std::vector<Eigen::Index> free_at(const Values& values, const Values& slope, const Limits& limits) {
    std::vector<Eigen::Index> out;
    for (Eigen::Index p = 0; p < parameters; ++p) {
        if (limits.fixed.at(static_cast<std::size_t>(p))) continue;
        if (values[p] <= limits.low[p] && slope[p] <= 0) continue;
        if (values[p] >= limits.high[p] && slope[p] >= 0) continue;
        // Without ortho-positronium nothing depends on its lifetime.
        if (p == ortho_ns && values[ortho] == 0) continue;
        out.push_back(p);
    }
    return out;
}

struct Optimum {
    Values values;
    Likelihood::Point point;
    bool converged = false;
};

/// Scoring with the expected information, damped as by Levenberg and Marquardt, within the limits.
Optimum climb(const Likelihood& likelihood, Values values, const Limits& limits) {
    constexpr int most_steps = 200;
    constexpr double small = 1e-7;
    Optimum best{values, likelihood.at(values, true)};
    double damping = 1e-3;
    for (int step = 0; step < most_steps; ++step) {
        const auto free = free_at(best.values, best.point.slope, limits);
        const auto n = static_cast<Eigen::Index>(free.size());
        Eigen::MatrixXd information(n, n);
        Eigen::VectorXd slope(n);
        for (Eigen::Index i = 0; i < n; ++i) {
            slope[i] = best.point.slope[free[static_cast<std::size_t>(i)]];
            for (Eigen::Index j = 0; j < n; ++j)
                information(i, j) = best.point.information(free[static_cast<std::size_t>(i)],
                                                           free[static_cast<std::size_t>(j)]);
        }
        Eigen::MatrixXd damped = information;
        damped.diagonal() *= 1 + damping;
        const Eigen::VectorXd change = damped.ldlt().solve(slope);
        Values next = best.values;
        for (Eigen::Index i = 0; i < n; ++i) {
            const Eigen::Index p = free[static_cast<std::size_t>(i)];
            next[p] = std::clamp(next[p] + change[i], limits.low[p], limits.high[p]);
        }
        const double gain = best.point.value - likelihood.at(next, false).value;
        if (gain >= 0) {
            best = {next, likelihood.at(next, true)};
            // A short step of a heavily damped system says nothing.
            if (gain < small && damping < 1) {
                best.converged = true;
                return best;
            }
            damping = std::max(damping / 10, 1e-9);
        } else {
            damping *= 10;
            if (damping > 1e12) {
                best.converged = true;  // no direction leads further up
                return best;
            }
        }
    }
    return best;
}

/// Parameters from which to climb: those of a typical scanner and tissue, at two widths.
std::vector<Values> starts(const Spectrum& s, const FitSettings& settings, double signal, double per_bin) {
    const auto peak = std::max_element(s.coincident.begin(), s.coincident.end()) - s.coincident.begin();
    const double peak_ns = s.middle_ns(static_cast<std::size_t>(peak));
    // Where it has risen to half of the peak.
    const double half = (s.coincident[static_cast<std::size_t>(peak)] + per_bin) / 2;
    std::ptrdiff_t rise = peak;
    while (rise > 0 && s.coincident[static_cast<std::size_t>(rise)] > half)
        --rise;
    const double width = std::max(peak_ns - s.middle_ns(static_cast<std::size_t>(rise)), s.bin_ns);
    std::vector<Values> out;
    for (const double narrower : {1.0, 0.6}) {
        Values v;
        const double sigma = settings.resolution_ns ? *settings.resolution_ns / fwhm_per_sigma
                                                    : std::max(0.7 * narrower * width, 0.5 * s.bin_ns);
        v << 0.1 * signal, 0.6 * signal, 0.3 * signal, per_bin, 2.0, sigma,
            settings.offset_ns.value_or(peak_ns - narrower * 0.3 * settings.direct_ns);
        out.push_back(v);
    }
    return out;
}

Limits limits_of(const Spectrum& s, const FitSettings& settings) {
    const double range = static_cast<double>(s.bins()) * s.bin_ns;
    const double infinity = std::numeric_limits<double>::infinity();
    Limits out;
    out.low << 0, 0, 0, std::max(s.randoms_by_chance, 0.0), 1.5 * settings.direct_ns, 0.2 * s.bin_ns,
        s.first_ns;
    out.high << infinity, infinity, infinity, infinity, range, range / 4, s.first_ns + range;
    out.fixed[sigma_ns] = settings.resolution_ns.has_value();
    out.fixed[offset_ns] = settings.offset_ns.has_value();
    return out;
}

/// The inverse of the information about the free parameters; 0 for the others.
Information covariance_of(const Optimum& best, const Limits& limits, std::size_t& free_count) {
    const auto free = free_at(best.values, best.point.slope, limits);
    free_count = free.size();
    const auto n = static_cast<Eigen::Index>(free.size());
    Eigen::MatrixXd part(n, n);
    for (Eigen::Index i = 0; i < n; ++i)
        for (Eigen::Index j = 0; j < n; ++j)
            part(i, j) =
                best.point.information(free[static_cast<std::size_t>(i)], free[static_cast<std::size_t>(j)]);
    // In units in which its diagonal is 1: triples and nanoseconds are of different sizes.
    const Eigen::VectorXd scale = part.diagonal().cwiseSqrt().cwiseInverse();
    const Eigen::MatrixXd inverse =
        scale.asDiagonal() *
        (scale.asDiagonal() * part * scale.asDiagonal()).completeOrthogonalDecomposition().pseudoInverse() *
        scale.asDiagonal();
    Information out = Information::Zero();
    for (Eigen::Index i = 0; i < n; ++i)
        for (Eigen::Index j = 0; j < n; ++j)
            out(free[static_cast<std::size_t>(i)], free[static_cast<std::size_t>(j)]) = inverse(i, j);
    return out;
}

/// Unknown if its error exceeds `largest`.
Estimate known_within(double largest, const Estimate& found) {
    constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
    return found.error <= largest ? found : Estimate{unknown, unknown};
}

void drop_what_is_not_told(LifetimeFit& fit, double range_ns) {
    for (Estimate* const time : {&fit.ortho_ns, &fit.mean_ns, &fit.resolution_ns})
        *time = known_within(time->value, *time);
    for (Estimate& intensity : fit.intensities)
        intensity = known_within(1, intensity);
    fit.offset_ns = known_within(range_ns, fit.offset_ns);
}

/// The error of a function of the parameters with this slope.
double error_of(const Values& slope, const Information& covariance) {
    return std::sqrt(std::max(slope.dot(covariance * slope), 0.0));
}

}  // namespace

LifetimeFit fit_lifetimes(const Spectrum& s, const FitSettings& settings) {
    const Likelihood likelihood(s, settings);
    const auto bins = static_cast<double>(s.bins());
    const double all = std::accumulate(s.coincident.begin(), s.coincident.end(), 0.0);
    const double randoms = std::accumulate(s.randoms.begin(), s.randoms.end(), 0.0);
    const double by_chance = s.delayed.empty() ? bins * s.coincident.front() : likelihood.delayed();
    const double signal = all - by_chance - (randoms - bins * s.randoms_by_chance);
    if (!(signal >= min_triples)) throw std::invalid_argument("too few triples");
    const Limits limits = limits_of(s, settings);
    Optimum best;
    bool first = true;
    for (const Values& start : starts(s, settings, signal, (by_chance + 0.5) / bins)) {
        Optimum found = climb(likelihood, start.cwiseMax(limits.low).cwiseMin(limits.high), limits);
        if (first || found.point.value < best.point.value) best = std::move(found);
        first = false;
    }
    std::size_t free = 0;
    const Information covariance = covariance_of(best, limits, free);
    const Values& v = best.values;

    LifetimeFit fit;
    const auto estimate = [&](Parameter p, double factor) {
        return Estimate{factor * v[p], factor * std::sqrt(std::max(covariance(p, p), 0.0))};
    };
    fit.ortho_ns = estimate(ortho_ns, 1);
    fit.resolution_ns = estimate(sigma_ns, fwhm_per_sigma);
    fit.offset_ns = estimate(offset_ns, 1);
    fit.chance_per_bin = estimate(chance, 1);
    fit.triples = v.head<components>().sum();
    const std::array lifetimes = {settings.para_ns, settings.direct_ns, v[ortho_ns]};
    for (std::size_t c = 0; c < components; ++c) {
        const auto index = static_cast<Eigen::Index>(c);
        Values slope = Values::Zero();
        slope.head<components>().setConstant(-v[index] / (fit.triples * fit.triples));
        slope[index] += 1 / fit.triples;
        fit.intensities[c] = {v[index] / fit.triples, error_of(slope, covariance)};
        fit.mean_ns.value += fit.intensities[c].value * lifetimes[c];
    }
    Values slope = Values::Zero();
    for (std::size_t c = 0; c < components; ++c)
        slope[static_cast<Eigen::Index>(c)] = (lifetimes[c] - fit.mean_ns.value) / fit.triples;
    slope[ortho_ns] = fit.intensity(Component::ortho).value;
    fit.mean_ns.error = error_of(slope, covariance);
    fit.deviance = best.point.value;
    fit.freedom = bins + (s.delayed.empty() ? 0 : 1) - static_cast<double>(free);
    fit.converged = best.converged;
    fit.expected = best.point.expected;
    for (std::size_t c = 0; c < components; ++c) {
        fit.of_component[c] = likelihood.shares(static_cast<Component>(c), v);
        for (double& value : fit.of_component[c])
            value *= v[static_cast<Eigen::Index>(c)];
    }
    drop_what_is_not_told(fit, bins * s.bin_ns);
    return fit;
}

}  // namespace petacq::lifetime
