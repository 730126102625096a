#include "tools/petcal/estimate/pairs/normalise.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "config/median.hpp"
#include "tools/normalisation/normalisation.hpp"

namespace petacq::estimate {

namespace {

using Mirror = std::function<std::size_t(std::size_t)>;

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

/// Factors that bring the expected sums to the counts. The median relative error by counts.
double update(std::vector<double>& factors, const NetCounts& counts, const std::vector<double>& expected,
              double scale, const Mirror& mirror_of) {
    std::vector<double> values(factors.size(), 1);
    std::vector<double> variances(factors.size(), INFINITY);
    std::vector<double> errors;
    for (std::size_t i = 0; i < factors.size(); ++i) {
        const std::size_t mirror = mirror_of(i);
        const double both = mirror == i ? 0 : 1;
        const double sum = scale * (expected[i] + both * expected[mirror]);
        if (!(sum > 0)) continue;
        const double net = counts.net[i] + both * counts.net[mirror];
        const double variance = counts.variance[i] + both * counts.variance[mirror];
        values[i] = std::max(factors[i] * net / sum, 0.0);
        // As expected rather than as found: a class with few counts is not a certain one.
        variances[i] = factors[i] * factors[i] * std::max(variance, sum) / (sum * sum);
        errors.push_back(std::sqrt(variances[i]));
    }
    shrink(values, variances);
    factors = std::move(values);
    return config::median(std::move(errors));
}

/// Moves the pattern that the efficiencies of all groups have in common out of them; see the header.
std::vector<double> take_pattern(Efficiencies& crystals, const std::vector<bool>& live, std::size_t groups,
                                 const std::function<std::size_t(std::size_t)>& group_of) {
    std::vector<double> n(groups);
    std::vector<double> sum(groups);
    std::vector<double> squares(groups);
    for (std::size_t i = 0; i < live.size(); ++i) {
        if (!live[i]) continue;
        for (const std::size_t group : {group_of(i), groups - 1 - group_of(i)}) {
            n[group] += 1;
            sum[group] += crystals.efficiency[i];
            squares[group] += crystals.efficiency[i] * crystals.efficiency[i];
        }
    }
    std::vector<double> pattern(groups, 1);
    std::vector<double> variances(groups, INFINITY);
    for (std::size_t group = 0; group < groups; ++group) {
        if (n[group] < 3) continue;
        pattern[group] = sum[group] / n[group];
        variances[group] =
            std::max(squares[group] / n[group] - pattern[group] * pattern[group], 0.0) / n[group];
    }
    shrink(pattern, variances);
    for (std::size_t i = 0; i < live.size(); ++i) {
        if (live[i]) crystals.efficiency[i] /= pattern[group_of(i)];
    }
    return pattern;
}

/// From -1 to 1.
double place_along(const config::Geometry& g, std::size_t axis, std::size_t crystal) {
    const double rings = g.rings();
    const double columns = g.crystals_in_ring();
    const std::size_t ring = crystal / g.crystals_in_ring();
    if (axis == 2) return rings > 1 ? 2 * static_cast<double>(ring) / (rings - 1) - 1 : 0;
    const double column = static_cast<double>(crystal % g.crystals_in_ring());
    const double angle = 2 * std::numbers::pi * (column - (g.crystals_per_module_y() - 1) / 2.0) / columns;
    return axis == 0 ? std::cos(angle) : std::sin(angle);
}

void fix_patterns(const config::Geometry& g, NormalisationFit& fit) {
    const std::size_t columns = g.crystals_per_module_y();
    const std::size_t rings = g.rings();
    std::vector<bool> live(g.crystal_count(), true);
    for (const auto* others : {&fit.crystals.dead, &fit.crystals.unseen}) {
        for (const std::uint32_t crystal : *others)
            live[crystal] = false;
    }
    const auto around = take_pattern(fit.crystals, live, columns,
                                     [&](std::size_t i) { return i % g.crystals_in_ring() % columns; });
    const auto along =
        take_pattern(fit.crystals, live, rings, [&](std::size_t i) { return i / g.crystals_in_ring(); });
    for (std::size_t i = 0; i < fit.factors.transaxial.size(); ++i)
        fit.factors.transaxial[i] *= around[i / columns % columns] * around[i % columns];
    for (std::size_t i = 0; i < fit.factors.axial.size(); ++i)
        fit.factors.axial[i] *= along[i / rings] * along[i % rings];
    for (std::size_t axis = 0; axis < 3; ++axis) {
        double sum = 0;
        double squares = 0;
        for (std::size_t i = 0; i < live.size(); ++i) {
            if (!live[i]) continue;
            const double place = place_along(g, axis, i);
            sum += place * (fit.crystals.efficiency[i] - 1);
            squares += place * place;
        }
        fit.one_sided[axis] = squares > 0 ? 2 * sum / squares : 0;
    }
}

NormalisationFit::Classes count_classes(const std::vector<double>& sums, const Mirror& mirror_of,
                                        const std::function<bool(std::size_t)>& accepted) {
    NormalisationFit::Classes classes;
    for (std::size_t i = 0; i < sums.size(); ++i) {
        if (!accepted(i)) continue;
        classes.all += 1;
        classes.unseen += sums[i] + sums[mirror_of(i)] > 0 ? 0 : 1;
    }
    return classes;
}

void compare_units(const LineCounts& counts, const PairSums& sums, double scale, NormalisationFit& fit) {
    constexpr double enough = 20;
    double pairs = 0;
    double chi = 0;
    double beyond = 0;
    double squares = 0;
    for (std::size_t i = 0; i < sums.units.size(); ++i) {
        const double expected = scale * sums.units[i];
        if (expected < enough) continue;
        const double off = counts.units.net[i] - expected;
        const double variance = std::max(counts.units.variance[i], expected);
        pairs += 1;
        chi += off * off / variance;
        beyond += off * off - variance;
        squares += expected * expected;
    }
    fit.chi_square = pairs > 0 ? chi / pairs : 0;
    fit.excess = squares > 0 ? std::sqrt(std::max(beyond / squares, 0.0)) : 0;
}

}  // namespace

LineCounts::LineCounts(const FanModel& model) : model_(model) {
    const config::Geometry& g = model.geometry();
    const GeometricFactors even = GeometricFactors::even(g);
    crystals = nothing(g.crystal_count());
    transaxial = nothing(even.transaxial.size());
    axial = nothing(even.axial.size());
    units = nothing(std::size_t{model.unit_count()} * model.unit_count());
}

void LineCounts::add(std::uint32_t a, std::uint32_t b, double count, double variance) {
    const config::Geometry& g = model_.geometry();
    const std::uint32_t in_ring = g.crystals_in_ring();
    crystals.add(a, count, variance);
    crystals.add(b, count, variance);
    transaxial.add(normalisation::transaxial_class(g, a % in_ring, b % in_ring), count, variance);
    axial.add(std::size_t{a / in_ring} * g.rings() + b / in_ring, count, variance);
    units.add(std::size_t{model_.unit_of(a)} * model_.unit_count() + model_.unit_of(b), count, variance);
    total += count;
}

void LineCounts::finish() {
    join_orders(axial, model_.geometry().rings());
    join_orders(units, model_.unit_count());
}

NormalisationFit fit_normalisation(const FanModel& model, const LineCounts& counts,
                                   const NormalisationFitOptions& options) {
    const config::Geometry& g = model.geometry();
    NormalisationFit fit;
    fit.factors = GeometricFactors::even(g);
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
    const std::size_t columns = g.crystals_per_module_y();
    const auto across = [columns](std::size_t i) {
        const std::size_t apart = i / columns / columns;
        return (apart * columns + columns - 1 - i % columns) * columns + columns - 1 - i / columns % columns;
    };
    const std::size_t ring_pairs = std::size_t{g.rings()} * g.rings();
    const auto along = [ring_pairs](std::size_t i) { return ring_pairs - 1 - i; };

    EfficiencyOptions efficiencies = options.efficiencies;
    fit.crystals = crystal_efficiencies(counts.crystals, fan_sums, efficiencies);
    for (std::uint32_t round = 0; round < options.rounds; ++round) {
        PairSums sums = sums_of(fit.crystals.efficiency);
        fit.error_transaxial =
            update(fit.factors.transaxial, counts.transaxial, sums.transaxial, scale_of(sums), across);
        sums = sums_of(fit.crystals.efficiency);
        fit.error_axial = update(fit.factors.axial, counts.axial, sums.axial, scale_of(sums), along);
        efficiencies.start = fit.crystals.efficiency;
        fit.crystals = crystal_efficiencies(counts.crystals, fan_sums, efficiencies);
    }
    const PairSums sums = sums_of(fit.crystals.efficiency);
    compare_units(counts, sums, scale_of(sums), fit);
    const CylinderScan& scan = model.scan();
    fit.transaxial = count_classes(sums.transaxial, across, [&](std::size_t i) {
        return i / columns / columns >= scan.min_module_difference;
    });
    fit.axial = count_classes(sums.axial, along, [&](std::size_t i) {
        const std::size_t a = i / g.rings();
        const std::size_t b = i % g.rings();
        return std::max(a, b) - std::min(a, b) <= scan.max_ring_difference;
    });
    fix_patterns(g, fit);
    return fit;
}

}  // namespace petacq::estimate
