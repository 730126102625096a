#include "tools/petlm/lifetime/fit.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <stdexcept>

#include "config/base/constants.hpp"

namespace petacq::lifetime {
namespace {

using config::fwhm_per_sigma;
constexpr double min_triples = 100;

/// ln of the normal distribution function.
double log_normal_below(double x) {
    if (x > -30) return std::log(0.5 * std::erfc(-x / std::numbers::sqrt2));
    const double inverse = 1 / (x * x);  // asymptotic series: erfc() underflows
    return -x * x / 2 - std::log(-x * std::sqrt(2 * std::numbers::pi)) +
           std::log1p(inverse * (-1 + inverse * (3 - 15 * inverse)));
}

/// What is fitted.
enum Parameter : std::uint8_t { para, direct, ortho, chance, ortho_ns, sigma_ns, offset_ns, parameters };
using Values = Eigen::Matrix<double, parameters, 1>;
using Information = Eigen::Matrix<double, parameters, parameters>;

/// The best number of random prompts in a bin, known by `count` events of weight `weight`, if `observed` were
/// seen where `others` are expected besides them.
double profiled_randoms(double observed, double others, double count, double weight) {
    if (!(weight > 0)) return 0;
    const double k = 1 + 1 / weight;
    const double half = (observed + count - k * others) / 2;
    const double root = std::sqrt(half * half + k * count * others);
    // The other form of the solution where the first would lose its digits.
    if (half >= 0) return (half + root) / k;
    return root > half ? count * others / (root - half) : 0;
}

class Likelihood {
  public:
    Likelihood(const Spectrum& spectrum, const FitSettings& settings) : s_(spectrum), settings_(settings) {
        delayed_ = std::accumulate(s_.delayed.begin(), s_.delayed.end(), 0.0);
        const double sum = std::accumulate(s_.randoms.begin(), s_.randoms.end(), 0.0);
        const double squares = std::accumulate(s_.randoms_squares.begin(), s_.randoms_squares.end(), 0.0);
        weight_ = sum > 0 ? squares / sum : 0;
    }

    struct Point {
        double value = 0;  ///< deviance; the likelihood is largest where it is smallest
        Values slope;      ///< of the logarithm of the likelihood
        Information information;
        std::vector<double> expected;
    };

    [[nodiscard]] std::vector<double> shares(Component component, const Values& at) const {
        const std::array lifetimes = {settings_.para_ns, settings_.direct_ns, at[ortho_ns]};
        const double lifetime = lifetimes.at(static_cast<std::size_t>(component));
        std::vector<double> out(s_.bins());
        double before = decayed_before(s_.first_ns - at[offset_ns], lifetime, at[sigma_ns]);
        for (std::size_t i = 0; i < out.size(); ++i) {
            const double edge = s_.first_ns + static_cast<double>(i + 1) * s_.bin_ns;
            const double next = decayed_before(edge - at[offset_ns], lifetime, at[sigma_ns]);
            out[i] = std::max(next - before, 0.0);
            before = next;
        }
        return out;
    }

    [[nodiscard]] Point at(const Values& values, bool with_slopes) const {
        std::array<std::vector<double>, components> share;
        for (std::size_t c = 0; c < components; ++c)
            share[c] = shares(static_cast<Component>(c), values);
        std::array<std::vector<double>, 3> slopes;  // of the sum of the components, by the last parameters
        if (with_slopes) {
            for (std::size_t p = 0; p < slopes.size(); ++p)
                slopes[p] = slope_by(static_cast<Parameter>(ortho_ns + p), values);
        }
        Point point;
        point.slope.setZero();
        point.information.setZero();
        point.expected.resize(s_.bins());
        for (std::size_t i = 0; i < s_.bins(); ++i) {
            double others = values[chance] - s_.randoms_by_chance;
            for (std::size_t c = 0; c < components; ++c)
                others += values[static_cast<Eigen::Index>(c)] * share[c][i];
            others = std::max(others, 1e-12);
            const double observed = s_.coincident[i];
            const double count = weight_ > 0 ? s_.randoms[i] / weight_ : 0;
            const double randoms = profiled_randoms(observed, others, count, weight_);
            const double expected = others + randoms;
            point.expected[i] = expected;
            point.value += deviance(observed, expected);
            if (weight_ > 0) point.value += deviance(count, randoms / weight_);
            if (!with_slopes) continue;
            Values by;
            for (std::size_t c = 0; c < components; ++c)
                by[static_cast<Eigen::Index>(c)] = share[c][i];
            by[chance] = 1;
            for (std::size_t p = 0; p < slopes.size(); ++p)
                by[static_cast<Eigen::Index>(ortho_ns + p)] = slopes[p][i];
            point.slope += (observed / expected - 1) * by;
            point.information += by * by.transpose() / (expected + weight_ * randoms);
        }
        if (s_.delayed.empty()) return point;
        const auto bins = static_cast<double>(s_.bins());
        const double by_chance = std::max(values[chance], 1e-12);
        point.value += deviance(delayed_, bins * by_chance);
        point.slope[chance] += delayed_ / by_chance - bins;
        point.information(chance, chance) += bins / by_chance;
        return point;
    }

    [[nodiscard]] double delayed() const { return delayed_; }

  private:
    static double deviance(double observed, double expected) {
        if (!(expected > 0)) return observed > 0 ? std::numeric_limits<double>::infinity() : 0;
        const double of_log = observed > 0 ? observed * std::log(observed / expected) : 0;
        return 2 * (of_log - (observed - expected));
    }

    [[nodiscard]] std::vector<double> slope_by(Parameter parameter, const Values& values) const {
        Values low = values;
        Values high = values;
        const double step = 1e-4 * std::max(std::abs(values[parameter]), 0.1);
        low[parameter] -= step / 2;
        high[parameter] += step / 2;
        std::vector<double> out(s_.bins(), 0.0);
        for (std::size_t c = 0; c < components; ++c) {
            const auto component = static_cast<Component>(c);
            const double triples = values[static_cast<Eigen::Index>(c)];
            if (triples == 0 || (parameter == ortho_ns && component != Component::ortho)) continue;
            const auto below = shares(component, low);
            const auto above = shares(component, high);
            for (std::size_t i = 0; i < out.size(); ++i)
                out[i] += triples * (above[i] - below[i]) / step;
        }
        return out;
    }

    const Spectrum& s_;
    const FitSettings& settings_;
    double delayed_ = 0;
    double weight_ = 0;  ///< of an event of the randoms
};

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

/// The error of a function of the parameters with this slope.
double error_of(const Values& slope, const Information& covariance) {
    return std::sqrt(std::max(slope.dot(covariance * slope), 0.0));
}

}  // namespace

double decayed_before(double t, double lifetime, double sigma) {
    const double x = t / sigma;
    const double ratio = sigma / lifetime;
    const double later = std::exp(ratio * ratio / 2 - t / lifetime + log_normal_below(x - ratio));
    return 0.5 * std::erfc(-x / std::numbers::sqrt2) - later;
}

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
    return fit;
}

}  // namespace petacq::lifetime
