// Where a single lies, as far as the chance of its pairs depends on it: in a module around the ring; under
// policies that ask which pairs are good and a condition on rings, also in a zone along the axis.
#pragma once

#include <algorithm>
#include <cstdint>

#include "config/geometry.hpp"
#include "gpu/rules/coincidence_rules.hpp"
#include "gpu/rules/pair_rule.hpp"

namespace petacq::gpu {

/// Whether it matters which of the other pairs of a window are good.
inline bool asks_for_good(MultiplesPolicy policy) {
    switch (policy) {
        case MultiplesPolicy::take_winner_of_goods:
        case MultiplesPolicy::take_if_only_one_good:
        case MultiplesPolicy::take_winner_if_all_are_goods:
            return true;
        case MultiplesPolicy::remove_multiples:
        case MultiplesPolicy::take_all_goods:
        case MultiplesPolicy::take_winner_if_is_good:
            break;
    }
    return false;
}

/// A cell is a module around the ring within a zone of rings: module * zones + zone.
struct PairCells {
    /// The work grows with the third power of the number of cells: 128 take 15 to 40 ms.
    static constexpr std::uint32_t max_cells = 200;
    static constexpr std::uint32_t max_zones = 8;

    PairRule rule;
    std::uint32_t rings = 1;
    std::uint32_t zones = 1;  ///< of about equally many rings; at most `rings`

    static PairCells of(const config::Geometry& geometry, const CoincidenceRules& rules) {
        PairCells cells{PairRule::of(geometry, rules), geometry.rings(), 1};
        if (asks_for_good(rules.policy) && rules.max_ring_difference < cells.rings - 1) {
            const std::uint32_t zones = std::clamp(max_cells / cells.rule.modules, 1U, max_zones);
            cells.zones = std::min(zones, cells.rings);
        }
        return cells;
    }
    [[nodiscard]] std::uint32_t count() const { return rule.modules * zones; }
    [[nodiscard]] std::uint32_t module_of(std::uint32_t cell) const { return cell / zones; }
    [[nodiscard]] std::uint32_t zone_of(std::uint32_t cell) const { return cell % zones; }
    [[nodiscard]] std::uint32_t of_crystal(std::uint32_t crystal) const {
        const PairRule::Coordinates place = rule.coordinates_of(crystal);
        return place.module * zones + place.ring * zones / rings;
    }
    /// The rings of a zone begin here, those of the last one end at first_ring(zones).
    [[nodiscard]] std::uint32_t first_ring(std::uint32_t zone) const {
        return (zone * rings + zones - 1) / zones;
    }
    /// The part of the pairs of a ring of zone a and one of zone b that the condition on rings accepts.
    [[nodiscard]] double near(std::uint32_t a, std::uint32_t b) const {
        std::uint32_t accepted = 0;
        std::uint32_t all = 0;
        for (std::uint32_t i = first_ring(a); i < first_ring(a + 1); ++i) {
            for (std::uint32_t j = first_ring(b); j < first_ring(b + 1); ++j) {
                accepted += (i > j ? i - j : j - i) <= rule.max_ring_difference ? 1 : 0;
                ++all;
            }
        }
        return static_cast<double>(accepted) / all;
    }
};

}  // namespace petacq::gpu
