// When two singles form a good pair.
#pragma once

#include <cstdint>

#include "config/geometry.hpp"
#include "gpu/rules/coincidence_rules.hpp"
#include "net/wire.hpp"

namespace petacq::gpu {

/// The condition on two crystals to make a good pair.
struct PairRule {
    std::uint32_t crystals_in_ring = 1;
    std::uint32_t crystals_per_module = 1;  ///< around the ring
    std::uint32_t modules = 1;              ///< around the ring
    std::uint32_t min_module_difference = 0;
    std::uint32_t max_ring_difference = UINT32_MAX;

    static PairRule of(const config::Geometry& geometry, const CoincidenceRules& rules) {
        return PairRule{geometry.crystals_in_ring(), geometry.crystals_per_module_y(),
                        geometry.modules_in_ring(), rules.min_module_difference, rules.max_ring_difference};
    }

    /// The coordinates of a crystal that the condition uses, besides requiring two different crystals.
    struct Coordinates {
        std::uint32_t ring = 0;
        std::uint32_t module = 0;  ///< around the ring
    };
    PETACQ_HD Coordinates coordinates_of(std::uint32_t crystal) const {
        const std::uint32_t ring = crystal / crystals_in_ring;
        return {ring, (crystal - ring * crystals_in_ring) / crystals_per_module};
    }
    /// The difference of two modules, the shorter way around the ring.
    PETACQ_HD std::uint32_t modules_apart(std::uint32_t a, std::uint32_t b) const {
        const std::uint32_t straight = a > b ? a - b : b - a;
        const std::uint32_t around = modules - straight;
        return straight < around ? straight : around;
    }
    PETACQ_HD bool geometry_good(Coordinates a, Coordinates b) const {
        const std::uint32_t rings = a.ring > b.ring ? a.ring - b.ring : b.ring - a.ring;
        return modules_apart(a.module, b.module) >= min_module_difference && rings <= max_ring_difference;
    }
    /// The geometric part alone; the crystals may be the same.
    PETACQ_HD bool geometry_good(std::uint32_t a, std::uint32_t b) const {
        return geometry_good(coordinates_of(a), coordinates_of(b));
    }
    PETACQ_HD bool good(std::uint32_t a, std::uint32_t b) const { return a != b && geometry_good(a, b); }
};

}  // namespace petacq::gpu
