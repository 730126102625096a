// When two singles form a good pair.
#pragma once

#include <cstdint>

#include "config/scanner/geometry.hpp"
#include "gpu/rules/coincidence_rules.hpp"
#include "gpu/rules/field_of_view.hpp"
#include "net/wire.hpp"

namespace petacq::gpu {

/// The condition in a ring of the short form: it follows from counts.
struct RingRule {
    std::uint32_t crystals_in_ring = 1;
    std::uint32_t crystals_per_module = 1;  ///< around the ring
    std::uint32_t modules = 1;              ///< config::Geometry::modules_around()
    std::uint32_t min_module_difference = 0;
    std::uint32_t max_ring_difference = UINT32_MAX;

    /// The coordinates of a crystal that the condition uses, besides requiring two different crystals.
    struct Coordinates {
        std::uint32_t ring = 0;    ///< long form: the crystal
        std::uint32_t module = 0;  ///< around the ring; long form: the group of its module
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
    PETACQ_HD bool good(std::uint32_t a, std::uint32_t b) const {
        return a != b && geometry_good(coordinates_of(a), coordinates_of(b));
    }
};

/// The condition in a scanner of the long form: the groups of the two modules may pair and lie far enough
/// apart around the ring, the pair is not too long along the axis, and its line meets the field of view.
struct LongFormRule : RingRule {
    const config::PairGeometry::Crystal* crystals = nullptr;  ///< [crystal]
    const config::PairGeometry::PairGroup* groups = nullptr;
    const std::uint8_t* may_pair = nullptr;  ///< config::PairGeometry::may_pair
    std::uint32_t group_count = 0;
    std::uint32_t max_z_difference_um = UINT32_MAX;
    config::FieldOfView field_of_view{};  ///< half_x_um is 0: there is none

    PETACQ_HD Coordinates coordinates_of(std::uint32_t crystal) const {
        return {crystal, crystals[crystal].group};
    }
    PETACQ_HD bool geometry_good(Coordinates a, Coordinates b) const {
        return groups_good(a.module, b.module) && crystals_good(a.ring, b.ring);
    }
    PETACQ_HD bool good(std::uint32_t a, std::uint32_t b) const {
        return a != b && geometry_good(coordinates_of(a), coordinates_of(b));
    }
    /// What the condition demands of the groups of two modules.
    PETACQ_HD bool groups_good(std::uint32_t a, std::uint32_t b) const {
        return may_pair[std::uint64_t{a} * group_count + b] != 0 &&
               (min_module_difference == 0 ||
                modules_apart(groups[a].around, groups[b].around) >= min_module_difference);
    }
    /// What it demands of two crystals besides.
    PETACQ_HD bool crystals_good(std::uint32_t a, std::uint32_t b) const {
        const config::PairGeometry::Crystal& p = crystals[a];
        const config::PairGeometry::Crystal& q = crystals[b];
        const std::uint32_t rings = p.ring > q.ring ? p.ring - q.ring : q.ring - p.ring;
        const auto z = static_cast<std::uint32_t>(p.z_um > q.z_um ? p.z_um - q.z_um : q.z_um - p.z_um);
        return rings <= max_ring_difference && z <= max_z_difference_um &&
               (field_of_view.half_x_um == 0 || line_meets(field_of_view, p, q));
    }
};

/// The condition on two crystals of any scanner to make a good pair. A view of the Geometry that it was made
/// of, which must live as long. Searches choose one of the two forms once, with use().
struct PairRule : LongFormRule {
    static PairRule of(const config::Geometry& geometry, const CoincidenceRules& rules) {
        PairRule rule;
        rule.modules = geometry.modules_around();
        rule.min_module_difference = rules.min_module_difference;
        rule.max_ring_difference = rules.max_ring_difference;
        if (geometry.is_ring()) {
            rule.crystals_in_ring = geometry.crystals_in_ring();
            rule.crystals_per_module = geometry.crystals_per_module_y();
            return rule;
        }
        const config::PairGeometry& pairs = *geometry.pairs;
        rule.crystals = pairs.crystals.data();
        rule.groups = pairs.groups.data();
        rule.may_pair = pairs.may_pair.data();
        rule.group_count = static_cast<std::uint32_t>(pairs.groups.size());
        rule.max_z_difference_um = pairs.max_z_difference_um.value_or(UINT32_MAX);
        rule.field_of_view = pairs.field_of_view.value_or(config::FieldOfView{});
        return rule;
    }

    PETACQ_HD bool is_ring() const { return crystals == nullptr; }
    /// Calls what(rule) with the RingRule or the LongFormRule that this one is.
    template <class What>
    auto use(const What& what) const {
        return is_ring() ? what(static_cast<const RingRule&>(*this))
                         : what(static_cast<const LongFormRule&>(*this));
    }
    PETACQ_HD Coordinates coordinates_of(std::uint32_t crystal) const {
        return is_ring() ? RingRule::coordinates_of(crystal) : LongFormRule::coordinates_of(crystal);
    }
    PETACQ_HD bool geometry_good(Coordinates a, Coordinates b) const {
        return is_ring() ? RingRule::geometry_good(a, b) : LongFormRule::geometry_good(a, b);
    }
    /// The geometric part alone; the crystals may be the same.
    PETACQ_HD bool geometry_good(std::uint32_t a, std::uint32_t b) const {
        return geometry_good(coordinates_of(a), coordinates_of(b));
    }
    PETACQ_HD bool good(std::uint32_t a, std::uint32_t b) const { return a != b && geometry_good(a, b); }
};

}  // namespace petacq::gpu
