// The crystals behind each detector unit, and what of them decides which pairs are good, in a scanner of the
// long form. The short form needs neither: its numbers follow from counts (config/scanner/geometry.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace petacq::config {

/// A unit is bdm * du_count + du. Units that do not exist have no crystals.
struct ChannelMap {
    std::vector<std::uint32_t> first;  ///< [unit] where its crystals begin in `crystals`; one more at the end
    std::vector<std::uint32_t> crystals;  ///< [first[unit] + local]
    std::uint32_t max_crystals_per_du = 0;

    [[nodiscard]] std::uint32_t crystals_of_unit(std::uint32_t unit) const {
        return first[unit + 1] - first[unit];
    }
};

/// A line between two crystals meets it. Around the axis, centred at the origin.
struct FieldOfView {
    std::uint32_t half_x_um = 0;       ///< of a box; of a cylinder its radius
    std::uint32_t half_y_um = 0;       ///< of a box; 0: a cylinder
    std::uint32_t half_length_um = 0;  ///< along the axis
    [[nodiscard]] bool is_cylinder() const { return half_y_um == 0; }
    bool operator==(const FieldOfView&) const = default;
};

/// The part of the rule of good pairs that the description of a scanner states. Positions are whole
/// micrometres, so that every back-end decides the same.
struct PairGeometry {
    struct Crystal {
        std::uint32_t group = 0;  ///< of modules that pair with the same others
        std::uint32_t ring = 0;   ///< how many places along the axis are below it
        std::int32_t x_um = 0;    ///< middle of the front face
        std::int32_t y_um = 0;
        std::int32_t z_um = 0;
    };
    /// The place around the ring that all modules of a group share.
    struct PairGroup {
        std::uint32_t around = 0;     ///< place around the ring
        std::uint32_t around_of = 0;  ///< how many places there are; 0: its modules form no ring
    };
    std::vector<Crystal> crystals;  ///< [crystal]
    std::vector<PairGroup> groups;
    std::vector<std::uint8_t> may_pair;  ///< [a * groups + b] whether, symmetric
    std::optional<std::uint32_t> max_z_difference_um{};
    std::optional<FieldOfView> field_of_view{};

    static constexpr std::uint32_t max_groups = 4096;
    static constexpr double max_position_mm = 200'000;  ///< in each direction

    /// How many places the one ring has that all modules are around; 0: they form no ring, or several.
    [[nodiscard]] std::uint32_t places_around() const {
        for (const PairGroup& group : groups)
            if (group.around_of != groups.front().around_of) return 0;
        return groups.front().around_of;
    }
};

}  // namespace petacq::config
