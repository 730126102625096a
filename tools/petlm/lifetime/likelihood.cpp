#include "tools/petlm/lifetime/likelihood.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "tools/petlm/lifetime/decayed.hpp"

namespace petacq::lifetime {
namespace {

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

double deviance(double observed, double expected) {
    if (!(expected > 0)) return observed > 0 ? std::numeric_limits<double>::infinity() : 0;
    const double of_log = observed > 0 ? observed * std::log(observed / expected) : 0;
    return 2 * (of_log - (observed - expected));
}

}  // namespace

Likelihood::Likelihood(const Spectrum& spectrum, const FitSettings& settings)
    : s_(spectrum), settings_(settings) {
    delayed_ = std::accumulate(s_.delayed.begin(), s_.delayed.end(), 0.0);
    const double sum = std::accumulate(s_.randoms.begin(), s_.randoms.end(), 0.0);
    const double squares = std::accumulate(s_.randoms_squares.begin(), s_.randoms_squares.end(), 0.0);
    weight_ = sum > 0 ? squares / sum : 0;
}

std::vector<double> Likelihood::shares(Component component, const Values& at) const {
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

Likelihood::Point Likelihood::at(const Values& values, bool with_slopes) const {
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

std::vector<double> Likelihood::slope_by(Parameter parameter, const Values& values) const {
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

}  // namespace petacq::lifetime
