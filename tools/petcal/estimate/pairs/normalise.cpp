#include "tools/petcal/estimate/pairs/normalise.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "config/median.hpp"

namespace petacq::estimate {

namespace {

NetCounts nothing(std::size_t size) {
    return {std::vector<double>(size), std::vector<double>(size)};
}

/// [place][place]: both orders get the sum of the two.
void join_orders(NetCounts& counts, std::size_t places) {
    for (std::vector<double>* values : {&counts.net, &counts.variance}) {
        for (std::size_t a = 0; a < places; ++a) {
            for (std::size_t b = 0; b < a; ++b) {
                double& one = (*values)[a * places + b];
                double& other = (*values)[b * places + a];
                one = other = one + other;
            }
        }
    }
}

/// Estimates around 1 and their variances; those of infinite variance know nothing. Draws them towards 1 by
/// their share of noise.
void shrink(std::vector<double>& values, const std::vector<double>& variances) {
    double weights = 0;
    double squares = 0;  // beyond those by noise
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (!std::isfinite(variances[i])) continue;
        const double weight = 1 / (variances[i] + 1e-12);
        weights += weight;
        squares += weight * ((values[i] - 1) * (values[i] - 1) - variances[i]);
    }
    const double true_variance = weights > 0 ? std::max(squares / weights, 0.0) : 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const bool known = std::isfinite(variances[i]) && true_variance > 0;
        values[i] = known ? 1 + (values[i] - 1) * true_variance / (true_variance + variances[i]) : 1;
    }
}

/// At the first of those that are the same, their sum.
std::vector<double> over_same(const std::vector<double>& values, const FactorKind& kind) {
    std::vector<double> sums(values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
        sums[kind.same[i]] += values[i];
    return sums;
}

/// Factors that bring the expected sums to the counts. The median relative error by counts.
double update(std::vector<double>& factors, const NetCounts& counts, const std::vector<double>& expected,
              double scale, const FactorKind& kind) {
    const std::vector<double> all_expected = over_same(expected, kind);
    const std::vector<double> all_net = over_same(counts.net, kind);
    const std::vector<double> all_variance = over_same(counts.variance, kind);
    std::vector<double> values(factors.size(), 1);
    std::vector<double> variances(factors.size(), INFINITY);
    std::vector<double> errors;
    for (std::size_t i = 0; i < factors.size(); ++i) {
        const double sum = scale * all_expected[kind.same[i]];
        if (!(sum > 0)) continue;
        const double net = all_net[kind.same[i]];
        const double variance = all_variance[kind.same[i]];
        values[i] = std::max(factors[i] * net / sum, 0.0);
        // As expected rather than as found: a class with few counts is not a certain one.
        variances[i] = factors[i] * factors[i] * std::max(variance, sum) / (sum * sum);
        errors.push_back(std::sqrt(variances[i]));
    }
    shrink(values, variances);
    factors = std::move(values);
    return config::median(std::move(errors));
}

/// Moves the pattern that the efficiencies of all modules have in common to the factors; see the header.
void move_pattern(const FactorKind& kind, const std::vector<bool>& live, Efficiencies& crystals,
                  std::vector<double>& factors) {
    const std::size_t places = kind.mirrored.size();
    std::vector<double> n(places);
    std::vector<double> sum(places);
    std::vector<double> squares(places);
    for (std::size_t i = 0; i < live.size(); ++i) {
        if (!live[i]) continue;
        for (const std::size_t place : {kind.place_of[i], kind.mirrored[kind.place_of[i]]}) {
            n[place] += 1;
            sum[place] += crystals.efficiency[i];
            squares[place] += crystals.efficiency[i] * crystals.efficiency[i];
        }
    }
    std::vector<double> pattern(places, 1);
    std::vector<double> variances(places, INFINITY);
    for (std::size_t place = 0; place < places; ++place) {
        if (n[place] < 3) continue;
        pattern[place] = sum[place] / n[place];
        variances[place] =
            std::max(squares[place] / n[place] - pattern[place] * pattern[place], 0.0) / n[place];
    }
    shrink(pattern, variances);
    for (std::size_t i = 0; i < live.size(); ++i) {
        if (live[i]) crystals.efficiency[i] /= pattern[kind.place_of[i]];
    }
    for (std::size_t i = 0; i < factors.size(); ++i)
        factors[i] *= pattern[kind.places[i][0]] * pattern[kind.places[i][1]];
}

void fix_patterns(const ScanModel& model, NormalisationFit& fit) {
    std::vector<bool> live(model.geometry().crystal_count(), true);
    for (const auto* others : {&fit.crystals.dead, &fit.crystals.unseen}) {
        for (const std::uint32_t crystal : *others)
            live[crystal] = false;
    }
    move_pattern(model.transaxial(), live, fit.crystals, fit.factors.transaxial);
    move_pattern(model.axial(), live, fit.crystals, fit.factors.axial);
    for (std::size_t axis = 0; axis < 3; ++axis) {
        double sum = 0;
        double squares = 0;
        for (std::uint32_t i = 0; i < live.size(); ++i) {
            if (!live[i]) continue;
            const double place = model.place_along(axis, i);
            sum += place * (fit.crystals.efficiency[i] - 1);
            squares += place * place;
        }
        fit.one_sided[axis] = squares > 0 ? 2 * sum / squares : 0;
    }
}

NormalisationFit::Classes count_classes(const std::vector<double>& sums, const FactorKind& kind) {
    const std::vector<double> all = over_same(sums, kind);
    NormalisationFit::Classes classes;
    for (std::size_t i = 0; i < sums.size(); ++i) {
        if (!kind.accepted[i]) continue;
        classes.all += 1;
        classes.unseen += all[kind.same[i]] > 0 ? 0 : 1;
    }
    return classes;
}

void compare_parts(const LineCounts& counts, const PairSums& sums, double scale, NormalisationFit& fit) {
    constexpr double enough = 20;
    double pairs = 0;
    double chi = 0;
    double beyond = 0;
    double squares = 0;
    for (std::size_t i = 0; i < sums.parts.size(); ++i) {
        const double expected = scale * sums.parts[i];
        if (expected < enough) continue;
        const double off = counts.parts.net[i] - expected;
        const double variance = std::max(counts.parts.variance[i], expected);
        pairs += 1;
        chi += off * off / variance;
        beyond += off * off - variance;
        squares += expected * expected;
    }
    fit.chi_square = pairs > 0 ? chi / pairs : 0;
    fit.excess = squares > 0 ? std::sqrt(std::max(beyond / squares, 0.0)) : 0;
}

}  // namespace

LineCounts::LineCounts(const ScanModel& model) : model_(model) {
    crystals = nothing(model.geometry().crystal_count());
    transaxial = nothing(model.transaxial().same.size());
    axial = nothing(model.axial().same.size());
    parts = nothing(std::size_t{model.part_count()} * model.part_count());
}

void LineCounts::add(std::uint32_t a, std::uint32_t b, double count, double variance) {
    crystals.add(a, count, variance);
    crystals.add(b, count, variance);
    const FactorEntries at = model_.entries(a, b);
    transaxial.add(at.transaxial, count, variance);
    axial.add(at.axial, count, variance);
    parts.add(std::size_t{model_.part_of(a)} * model_.part_count() + model_.part_of(b), count, variance);
    total += count;
}

void LineCounts::finish() {
    if (model_.has_axial_orders()) join_orders(axial, model_.geometry().rings());
    join_orders(parts, model_.part_count());
}

NormalisationFit fit_normalisation(const ScanModel& model, const LineCounts& counts,
                                   const NormalisationFitOptions& options) {
    NormalisationFit fit;
    fit.factors = model.even_factors();
    const auto sums_of = [&](std::span<const double> weights) {
        if (options.progress) options.progress();
        return model.sums(weights, fit.factors, options.threads);
    };
    const auto fan_sums = [&](std::span<const double> weights, std::span<double> out) {
        const PairSums sums = sums_of(weights);
        std::copy(sums.fans.begin(), sums.fans.end(), out.begin());
    };
    const auto scale_of = [&](const PairSums& sums) {
        double expected = 0;
        for (const double sum : sums.transaxial)
            expected += sum;
        return counts.total / expected;
    };
    EfficiencyOptions efficiencies = options.efficiencies;
    fit.crystals = crystal_efficiencies(counts.crystals, fan_sums, efficiencies);
    for (std::uint32_t round = 0; round < options.rounds; ++round) {
        PairSums sums = sums_of(fit.crystals.efficiency);
        fit.error_transaxial = update(fit.factors.transaxial, counts.transaxial, sums.transaxial,
                                      scale_of(sums), model.transaxial());
        sums = sums_of(fit.crystals.efficiency);
        fit.error_axial = update(fit.factors.axial, counts.axial, sums.axial, scale_of(sums), model.axial());
        efficiencies.start = fit.crystals.efficiency;
        fit.crystals = crystal_efficiencies(counts.crystals, fan_sums, efficiencies);
    }
    const PairSums sums = sums_of(fit.crystals.efficiency);
    compare_parts(counts, sums, scale_of(sums), fit);
    fit.transaxial = count_classes(sums.transaxial, model.transaxial());
    fit.axial = count_classes(sums.axial, model.axial());
    fix_patterns(model, fit);
    return fit;
}

}  // namespace petacq::estimate
