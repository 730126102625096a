#include "tools/petcal/estimate/pairs/own_pairs.hpp"

#include <cmath>
#include <numbers>

#include "config/scanner/arrangement.hpp"

namespace petacq::estimate {

namespace {

Neighbours neighbours_in_ring(const config::Geometry& g) {
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

Neighbours neighbours_in_arrangement(const config::Scanner& scanner) {
    const config::Geometry& g = scanner.geometry;
    const config::Arrangement& arrangement = *scanner.arrangement;
    std::vector<std::uint32_t> unit_of(g.crystal_count());
    for (std::uint32_t unit = 0; unit < g.unit_count(); ++unit)
        for (std::uint32_t local = 0; local < g.crystals_of_unit(unit); ++local)
            unit_of[g.crystal(unit / g.du_count, unit % g.du_count, local)] = unit;
    Neighbours out(g.crystal_count());
    for (std::uint32_t crystal = 0; crystal < out.size(); ++crystal) {
        const config::CrystalAddress at = arrangement.address(crystal);
        const config::CrystalLayer& layer = arrangement.layer_of(crystal);
        const auto join = [&](std::uint32_t column, std::uint32_t row) {
            if (column >= layer.y.count() || row >= layer.z.count()) return;
            const std::uint32_t beside = arrangement.crystal({at.module, at.layer, column, row});
            if (unit_of[beside] != unit_of[crystal]) return;
            out[crystal].push_back(beside);
            out[beside].push_back(crystal);
        };
        join(at.column + 1, at.row);
        join(at.column, at.row + 1);
    }
    return out;
}

}  // namespace

Neighbours neighbours_in_units(const config::Scanner& scanner) {
    return scanner.is_ring() ? neighbours_in_ring(scanner.geometry) : neighbours_in_arrangement(scanner);
}

std::vector<std::uint32_t> blocks_of(const Neighbours& neighbours) {
    constexpr std::uint32_t none = UINT32_MAX;
    std::vector<std::uint32_t> out(neighbours.size(), none);
    std::uint32_t blocks = 0;
    std::vector<std::uint32_t> open;
    for (std::uint32_t first = 0; first < out.size(); ++first) {
        if (out[first] != none) continue;
        open.push_back(first);
        while (!open.empty()) {
            const std::uint32_t crystal = open.back();
            open.pop_back();
            if (out[crystal] != none) continue;
            out[crystal] = blocks;
            open.insert(open.end(), neighbours[crystal].begin(), neighbours[crystal].end());
        }
        ++blocks;
    }
    return out;
}

PairOrigin origin_of(const PairModel& m, double residual, std::span<const double> shifts,
                     std::span<const BlockShift> blocks) {
    // In units of the height of a Gaussian of width sigma.
    const double variance = m.sigma * m.sigma;
    const auto density = [&](double r) { return std::exp(-r * r / variance / 2); };
    PairOrigin out;
    double moment = 0;
    for (const double r : shifts) {
        const double part = m.beside * density(r);
        out.beside += part;
        moment += part * r;
    }
    for (const auto& [r, spread] : blocks) {
        const double narrower = variance / (variance + spread * spread);
        const double part = m.apart * std::sqrt(narrower) * density(r * std::sqrt(narrower));
        out.apart += part;
        moment += part * r * narrower;
    }
    const double others =
        m.beside * static_cast<double>(shifts.size()) + m.apart * static_cast<double>(blocks.size());
    out.own = (1 - others) * density(residual);
    const double stray = m.stray / (1 - m.stray) * m.sigma * std::sqrt(2 * std::numbers::pi) / m.range;
    const double all = out.own + out.beside + out.apart + stray;
    out.expected = (out.own * residual + moment) / all;
    out.own /= all;
    out.beside /= all;
    out.apart /= all;
    return out;
}

}  // namespace petacq::estimate
