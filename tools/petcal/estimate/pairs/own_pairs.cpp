#include "tools/petcal/estimate/pairs/own_pairs.hpp"

#include <cmath>
#include <numbers>

namespace petacq::estimate {

Neighbours neighbours_in_blocks(const config::Geometry& g) {
    const std::uint32_t around = g.crystals_in_ring();
    Neighbours out(g.crystal_count());
    for (std::uint32_t crystal = 0; crystal < out.size(); ++crystal) {
        const std::uint32_t row = crystal % around % g.crystals.y;
        const std::uint32_t column = crystal / around % g.crystals.z;
        if (row > 0) out[crystal].push_back(crystal - 1);
        if (row + 1 < g.crystals.y) out[crystal].push_back(crystal + 1);
        if (column > 0) out[crystal].push_back(crystal - around);
        if (column + 1 < g.crystals.z) out[crystal].push_back(crystal + around);
    }
    return out;
}

PairOrigin origin_of(const PairModel& m, double residual, const std::vector<double>& shifts) {
    // In units of a Gaussian's height.
    const auto density = [&](double r) {
        const double u = r / m.sigma;
        return std::exp(-u * u / 2);
    };
    double beside = 0;
    double moment = 0;
    for (const double r : shifts) {
        const double part = m.beside * density(r);
        beside += part;
        moment += part * r;
    }
    const double own = (1 - m.beside * static_cast<double>(shifts.size())) * density(residual);
    const double stray = m.stray / (1 - m.stray) * m.sigma * std::sqrt(2 * std::numbers::pi) / m.range;
    const double all = own + beside + stray;
    return {own / all, beside / all, (own * residual + moment) / all};
}

}  // namespace petacq::estimate
