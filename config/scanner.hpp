// The scanner description: how many crystals there are, how they are numbered, where they are.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace petacq::config {

struct Counts3 {
    std::uint32_t x = 1;
    std::uint32_t y = 1;
    std::uint32_t z = 1;
};

/// Counts that fix the numbering of crystals (docs/reference/configuration.md has the drawing). y runs around
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

/// Sizes in mm. A module is a flat panel whose front face touches the circle of ring_radius_mm at its middle.
struct Dimensions {
    double ring_radius_mm = 0;      ///< axis to the front face of the crystals, at the middle of a module
    double crystal_pitch_y_mm = 0;  ///< centre to centre inside a block, transaxial
    double crystal_pitch_z_mm = 0;  ///< centre to centre inside a block, axial
    double crystal_length_mm = 0;   ///< radial
    double block_gap_y_mm = 0;      ///< added between neighbouring blocks of a module
    double block_gap_z_mm = 0;
    double module_gap_z_mm = 0;  ///< added between modules along the axis
};

/// A board or concentrator that sends frames. With an id it is a source of sequenced framing; without one it
/// has an address and a port, and is a source of bare framing.
struct Source {
    std::optional<std::uint16_t> id;
    std::string address;              ///< IPv4 address that it sends from; with an id "" means any
    std::uint16_t port = 0;           ///< that it sends from; 0 with an id
    std::vector<std::uint32_t> bdms;  ///< the modules whose frames it carries
};

struct Scanner {
    std::string name;
    Geometry geometry;
    double tick_ps = 0;  ///< picoseconds per tick of detector time
    Dimensions dimensions;
    std::vector<Source> sources;  ///< all with an id, or none; empty: the description does not list them
};

/// Reads and checks a scanner description file. Throws config::Error with the key's path and the expectation.
Scanner load_scanner(const std::filesystem::path& file);
Scanner scanner_from_json(const nlohmann::json& document);
nlohmann::json to_json(const Scanner& scanner);

/// Ticks in `seconds` of detector time, rounded to the nearest; at most 2^63.
std::uint64_t ticks_of(double seconds, const Scanner& scanner);

using Vector3 = std::array<double, 3>;

/// Where a crystal is (docs/reference/geometry.md has the drawing). The axis of the scanner is z, its centre
/// the origin; crystal 0's module (module 0 of the ring) has its centre on +x, and module numbers rise
/// counter-clockwise seen from +z. Simulator, exports and images take every position from here.
struct CrystalPlace {
    Vector3 front_centre_mm;  ///< centre of the front face
    Vector3 outward;          ///< unit vector along the crystal, away from the axis
};
CrystalPlace crystal_place(const Scanner& scanner, std::uint32_t crystal);
/// The point inside the crystal, `depth_mm` behind the middle of its front face.
Vector3 point_at_depth(const CrystalPlace& place, double depth_mm);

}  // namespace petacq::config
