#include "tests/gpu/arrangements/annihilations.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace petacq::test {

using Crystal = config::PairGeometry::Crystal;

bool passes(const Crystal& a, const Crystal& b, double radius, double half_length) {
    const double off = radius / 2;
    const double ux = b.x_um - a.x_um;
    const double uy = b.y_um - a.y_um;
    const double length = ux * ux + uy * uy;
    if (length <= 0) return false;
    const double t = ((off - a.x_um) * ux - a.y_um * uy) / length;
    const double x = a.x_um + t * ux - off;
    const double y = a.y_um + t * uy;
    const double z = a.z_um + t * (b.z_um - a.z_um);
    return t > 0 && t < 1 && x * x + y * y < radius * radius && std::abs(z) < half_length;
}

Annihilations annihilations(const config::PairGeometry& pairs, double radius_mm, double half_length_mm,
                            std::size_t count, double mean_gap, double scattered, Rng& rng) {
    const std::vector<Crystal>& crystals = pairs.crystals;
    std::vector<double> efficiency;
    for (std::size_t i = 0; i < crystals.size(); ++i)
        efficiency.push_back(0.5 + 0.5 * rng.unit());
    const auto any = [&] {
        for (;;) {
            const std::size_t i = rng.index(crystals.size());
            if (rng.chance(efficiency[i])) return i;
        }
    };
    struct Hit {
        double time;
        std::size_t crystal;
        std::uint32_t annihilation;
    };
    std::vector<Hit> hits;
    double time = 0;
    for (std::uint32_t n = 0; n < count; ++n) {
        time += rng.exponential(mean_gap);
        std::size_t a = 0;
        std::size_t b = 0;
        const bool any_two = rng.chance(scattered);
        do {
            a = any();
            b = any();
        } while (a == b ||
                 (!any_two && !passes(crystals[a], crystals[b], radius_mm * 1000, half_length_mm * 1000)));
        hits.push_back({time, a, n});
        if (rng.chance(0.6)) hits.push_back({time + 4 * rng.unit(), b, n});
    }
    std::sort(hits.begin(), hits.end(), [](const Hit& x, const Hit& y) { return x.time < y.time; });
    std::vector<std::uint32_t> energies(hits.size());
    std::iota(energies.begin(), energies.end(), 0U);
    for (std::size_t i = energies.size() - 1; i > 0; --i)
        std::swap(energies[i], energies[rng.index(i + 1)]);
    Annihilations out;
    out.of_energy.resize(hits.size());
    constexpr std::uint64_t start = 1'000'000;
    for (std::size_t i = 0; i < hits.size(); ++i) {
        out.singles.push_back(
            {start + static_cast<std::uint64_t>(hits[i].time), static_cast<std::uint32_t>(hits[i].crystal),
             Annihilations::lowest_keV + Annihilations::step_keV * static_cast<float>(energies[i])});
        out.of_energy[energies[i]] = hits[i].annihilation;
    }
    out.ticks = static_cast<std::uint64_t>(time);
    return out;
}

}  // namespace petacq::test
