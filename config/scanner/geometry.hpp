// How many crystals a scanner has, and how they are numbered.
#pragma once

#include <cstdint>
#include <memory>

#include "config/scanner/channel_map.hpp"

namespace petacq::config {

/// Most crystals, and positions of all units: both are numbered with 32 bits, and tables hold several bytes
/// for each.
inline constexpr std::uint64_t max_crystals = std::uint64_t{1} << 24;
inline constexpr std::uint64_t max_positions = std::uint64_t{1} << 31;

struct Counts3 {
    std::uint32_t x = 1;
    std::uint32_t y = 1;
    std::uint32_t z = 1;
};

/// The numbers of crystals (docs/reference/geometry.md has the drawing). In the short form they follow from
/// counts: y runs around the ring (transaxial), z along the axis, x outwards (layers; 1). In the long form
/// the channel map has them, and the counts of the ring mean nothing.
struct Geometry {
    std::uint32_t channels = 0;       ///< readout channels around the ring
    Counts3 modules;                  ///< per channel: modules.y around the ring, modules.z along the axis
    Counts3 blocks;                   ///< per module
    Counts3 crystals;                 ///< per block
    std::uint32_t bdm_count = 0;      ///< short form: = channels * modules.y * modules.z
    std::uint32_t du_count = 0;       ///< of a module, at most 16; short form: = blocks.y * blocks.z
    std::uint32_t position_size = 0;  ///< x and y of a frame are below it; at most 256
    std::shared_ptr<const ChannelMap> channel_map{};  ///< of the long form
    std::shared_ptr<const PairGeometry> pairs{};      ///< of the long form

    /// Whether the scanner is one ring of equal modules in one layer: the short form.
    [[nodiscard]] bool is_ring() const { return !channel_map; }
    [[nodiscard]] std::uint32_t unit_count() const { return bdm_count * du_count; }
    /// Most crystals of a unit.
    [[nodiscard]] std::uint32_t crystals_per_du() const {
        return channel_map ? channel_map->max_crystals_per_du : crystals.y * crystals.z;
    }
    /// `unit`: bdm * du_count + du. 0 for one that does not exist.
    [[nodiscard]] std::uint32_t crystals_of_unit(std::uint32_t unit) const {
        return channel_map ? channel_map->crystals_of_unit(unit) : crystals_per_du();
    }
    /// Whether any of its units exists: BDMs of the long form may have gaps between their numbers.
    [[nodiscard]] bool module_exists(std::uint32_t bdm) const {
        return !channel_map || channel_map->first[bdm * du_count] < channel_map->first[(bdm + 1) * du_count];
    }
    [[nodiscard]] std::uint32_t crystal_count() const {
        return channel_map ? static_cast<std::uint32_t>(channel_map->crystals.size())
                           : crystals_in_ring() * rings();
    }

    /// Places for modules around the ring; 0: not all modules are around one ring.
    [[nodiscard]] std::uint32_t modules_around() const {
        return is_ring() ? modules_in_ring() : pairs->places_around();
    }

    // These describe a ring. REQUIRES: is_ring().
    [[nodiscard]] std::uint32_t modules_in_ring() const { return channels * modules.y; }
    [[nodiscard]] std::uint32_t crystals_per_module_y() const { return blocks.y * crystals.y; }
    [[nodiscard]] std::uint32_t crystals_in_ring() const {
        return modules_in_ring() * crystals_per_module_y();
    }
    [[nodiscard]] std::uint32_t rings() const { return modules.z * blocks.z * crystals.z; }

    /// Crystal number of local crystal `local` of detector unit `du` of module `bdm`; local is below
    /// crystals_of_unit().
    [[nodiscard]] std::uint32_t crystal(std::uint32_t bdm, std::uint32_t du, std::uint32_t local) const {
        if (channel_map) return channel_map->crystals[channel_map->first[bdm * du_count + du] + local];
        const std::uint32_t in_ring = bdm % modules_in_ring() * crystals_per_module_y() +
                                      du / blocks.z * crystals.y + local / crystals.z;
        const std::uint32_t ring =
            bdm / modules_in_ring() * blocks.z * crystals.z + du % blocks.z * crystals.z + local % crystals.z;
        return in_ring + ring * crystals_in_ring();
    }
    /// The local crystal that an entry of the position table names, for an entry below crystals_of_unit().
    [[nodiscard]] std::uint32_t local_of_origin(std::uint32_t origin) const {
        if (channel_map) return origin;
        return origin % crystals.z + (crystals.y - 1 - origin / crystals.z) * crystals.z;
    }
};

}  // namespace petacq::config
