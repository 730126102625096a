#include "gpu/randoms/pair_cells.hpp"

#include <algorithm>
#include <cstddef>

namespace petacq::gpu {

namespace {

std::uint32_t places_along_axis(const config::Geometry& geometry) {
    if (geometry.is_ring()) return geometry.rings();
    std::uint32_t highest = 0;
    for (const config::PairGeometry::Crystal& crystal : geometry.pairs->crystals)
        highest = std::max(highest, crystal.ring);
    return highest + 1;
}

/// Whether the rule refuses pairs of sides that can join.
bool limits_pairs(const config::Geometry& geometry, const PairRule& rule, std::uint32_t places) {
    return rule.max_ring_difference < places - 1 ||
           (!geometry.is_ring() &&
            (geometry.pairs->max_z_difference_um.has_value() || geometry.pairs->field_of_view.has_value()));
}

/// [zone a * zones + zone b] of a ring.
std::vector<double> near_rings(const PairBins& bins, std::uint32_t zones, const PairRule& rule) {
    const std::uint32_t rings = bins.rows();
    const auto first = [&](std::uint32_t zone) { return (zone * rings + zones - 1) / zones; };
    std::vector<double> near;
    for (std::uint32_t a = 0; a < zones; ++a) {
        for (std::uint32_t b = 0; b < zones; ++b) {
            std::uint32_t accepted = 0;
            std::uint32_t all = 0;
            for (std::uint32_t i = first(a); i < first(a + 1); ++i) {
                for (std::uint32_t j = first(b); j < first(b + 1); ++j) {
                    accepted += (i > j ? i - j : j - i) <= rule.max_ring_difference ? 1 : 0;
                    ++all;
                }
            }
            near.push_back(static_cast<double>(accepted) / all);
        }
    }
    return near;
}

/// Of two cells of the long form whose sides can join.
double good_pairs_of(const PairBins& bins, std::uint32_t a, std::uint32_t b) {
    double pairs = 0;
    for (std::uint32_t p = bins.first_bin(a); p < bins.first_bin(a + 1); ++p) {
        double others = 0;
        for (std::uint32_t q = bins.first_bin(b); q < bins.first_bin(b + 1); ++q)
            others += static_cast<double>(bins.crystals_of(q).size()) * bins.weight(p, q);
        pairs += static_cast<double>(bins.crystals_of(p).size()) * others;
    }
    return pairs;
}

}  // namespace

PairCells PairCells::of(const config::Geometry& geometry, const CoincidenceRules& rules) {
    PairCells cells;
    cells.rule = PairRule::of(geometry, rules);
    cells.pairs = geometry.pairs;
    cells.of_sides = std::make_shared<const PairSides>(PairSides::of(geometry, cells.rule));
    cells.sides = cells.of_sides->count;
    const std::uint32_t places = places_along_axis(geometry);
    if (asks_for_good(rules.policy) && limits_pairs(geometry, cells.rule, places)) {
        cells.zones = std::min(std::clamp(max_cells / cells.sides, 1U, max_zones), places);
        cells.partners_refused = !geometry.is_ring() || cells.zones > 1;
        cells.lacks_zones = geometry.is_ring() && cells.zones < 3 && cells.zones < places;
    }
    cells.bins = std::make_shared<const PairBins>(geometry, cells.rule, *cells.of_sides, cells.zones);
    for (std::uint32_t cell = 0; cell < cells.count(); ++cell)
        cells.empty_ = cells.empty_ || !cells.occupied(cell);
    if (asks_for_good(rules.policy)) cells.find_good_parts();
    return cells;
}

void PairCells::find_good_parts() {
    good_parts.assign(std::size_t{count()} * count(), 0);
    near_zones = rule.is_ring() ? near_rings(*bins, zones, rule) : std::vector<double>{};
    std::vector<double> crystals(count());
    for (std::uint32_t cell = 0; cell < count(); ++cell) {
        for (std::uint32_t bin = bins->first_bin(cell); bin < bins->first_bin(cell + 1); ++bin)
            crystals[cell] += static_cast<double>(bins->crystals_of(bin).size());
    }
    std::vector<double> good(std::size_t{zones} * zones);
    std::vector<double> all(good.size());
    for (std::uint32_t a = 0; a < count(); ++a) {
        for (std::uint32_t b = 0; b < count(); ++b) {
            if (!can_join(side_of(a), side_of(b))) continue;
            const std::size_t of_zones = std::size_t{zone_of(a)} * zones + zone_of(b);
            double& part = good_parts[std::size_t{a} * count() + b];
            if (rule.is_ring()) {
                part = near_zones[of_zones];
                continue;
            }
            const double possible = crystals[a] * crystals[b];
            part = possible > 0 ? good_pairs_of(*bins, a, b) / possible : 0;
            good[of_zones] += part * possible;
            all[of_zones] += possible;
        }
    }
    if (rule.is_ring()) return;
    for (std::size_t i = 0; i < good.size(); ++i)
        near_zones.push_back(all[i] > 0 ? good[i] / all[i] : 0);
}

}  // namespace petacq::gpu
