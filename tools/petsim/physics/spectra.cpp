#include "tools/petsim/physics/spectra.hpp"

#include <array>
#include <cmath>
#include <cstddef>

#include "tools/petsim/physics/compton.hpp"

namespace petacq::sim {

namespace {

constexpr std::size_t end_point = 593;

/// By whole keV; as many values as sums with the cascade need.
std::vector<double> beta_density() {
    std::vector<double> density(1200, 0.0);
    for (std::size_t t = 1; t < end_point; ++t) {
        const auto kinetic = static_cast<double>(t);
        const double left = static_cast<double>(end_point) - kinetic;
        density[t] = std::sqrt(kinetic * kinetic + 2 * kinetic * electron_keV) * (kinetic + electron_keV) *
                     left * left;
    }
    return density;
}

}  // namespace

Quantiles::Quantiles(const std::vector<double>& density, double low, double step) {
    constexpr std::size_t count = 4096;
    std::vector<double> cumulative(density.size(), 0.0);
    for (std::size_t i = 1; i < density.size(); ++i) {
        cumulative[i] = cumulative[i - 1] + 0.5 * (density[i - 1] + density[i]) * step;
    }
    const double total = cumulative.back();
    values_.reserve(count + 1);
    std::size_t i = 0;
    for (std::size_t q = 0; q <= count; ++q) {
        const double wanted = total * static_cast<double>(q) / static_cast<double>(count);
        // Ranges of zero density at either end contain no value.
        const auto below = [&](double c) { return q == 0 ? c <= 0 : c < wanted; };
        while (i + 2 < density.size() && below(cumulative[i + 1]))
            ++i;
        const double rise = cumulative[i + 1] - cumulative[i];
        const double part = rise > 0 ? (wanted - cumulative[i]) / rise : 0.0;
        values_.push_back(low + step * (static_cast<double>(i) + part));
    }
}

Quantiles compton_cosines() {
    constexpr std::size_t steps = 2048;
    std::vector<double> density;
    for (std::size_t i = 0; i <= steps; ++i) {
        const double cosine = -1.0 + 2.0 * static_cast<double>(i) / steps;
        density.push_back(klein_nishina_density(annihilation_keV, cosine));
    }
    return {density, -1.0, 2.0 / steps};
}

Quantiles lutetium_beta_energies() {
    return {beta_density(), 0.0, 1.0};
}

Quantiles lutetium_energies() {
    struct Gamma {
        std::size_t energy;
        double absorbed;
    };
    // Fractions absorbed in a small crystal.
    constexpr std::array<Gamma, 3> gammas{{{307, 0.35}, {202, 0.65}, {88, 1.0}}};
    std::vector<double> density = beta_density();
    for (const Gamma& gamma : gammas) {
        for (std::size_t e = density.size(); e-- > 0;) {
            const double shifted = e >= gamma.energy ? density[e - gamma.energy] : 0.0;
            density[e] = density[e] * (1 - gamma.absorbed) + shifted * gamma.absorbed;
        }
    }
    return {density, 0.0, 1.0};
}

}  // namespace petacq::sim
