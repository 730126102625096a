// How many crystals a scanner has, and how they are numbered.
#pragma once

#include <cstdint>

namespace petacq::config {

struct Counts3 {
    std::uint32_t x = 1;
    std::uint32_t y = 1;
    std::uint32_t z = 1;
};

/// Counts that fix the numbering of crystals (docs/reference/geometry.md has the drawing). y runs around
/// the ring (transaxial), z along the axis, x outwards (layers; 1).
struct Geometry {
    std::uint32_t channels = 0;       ///< readout channels around the ring
    Counts3 modules;                  ///< per channel: modules.y around the ring, modules.z along the axis
    Counts3 blocks;                   ///< per module
    Counts3 crystals;                 ///< per block
    std::uint32_t bdm_count = 0;      ///< = channels * modules.y * modules.z, at most 256
    std::uint32_t du_count = 0;       ///< = blocks.y * blocks.z, at most 16
    std::uint32_t position_size = 0;  ///< x and y of a frame are below it; at most 256

    [[nodiscard]] std::uint32_t modules_in_ring() const { return channels * modules.y; }
    [[nodiscard]] std::uint32_t crystals_per_du() const { return crystals.y * crystals.z; }
    [[nodiscard]] std::uint32_t crystals_per_module_y() const { return blocks.y * crystals.y; }
    [[nodiscard]] std::uint32_t crystals_in_ring() const {
        return modules_in_ring() * crystals_per_module_y();
    }
    [[nodiscard]] std::uint32_t rings() const { return modules.z * blocks.z * crystals.z; }
    [[nodiscard]] std::uint32_t crystal_count() const { return crystals_in_ring() * rings(); }

    /// Crystal number of local crystal `local` of detector unit `du` of module `bdm` (all in range).
    [[nodiscard]] std::uint32_t crystal(std::uint32_t bdm, std::uint32_t du, std::uint32_t local) const {
        const std::uint32_t in_ring = bdm % modules_in_ring() * crystals_per_module_y() +
                                      du / blocks.z * crystals.y + local / crystals.z;
        const std::uint32_t ring =
            bdm / modules_in_ring() * blocks.z * crystals.z + du % blocks.z * crystals.z + local % crystals.z;
        return in_ring + ring * crystals_in_ring();
    }
    /// The local crystal that an entry of the position table names, for an entry below crystals_per_du().
    [[nodiscard]] std::uint32_t local_of_origin(std::uint32_t origin) const {
        return origin % crystals.z + (crystals.y - 1 - origin / crystals.z) * crystals.z;
    }
};

}  // namespace petacq::config
