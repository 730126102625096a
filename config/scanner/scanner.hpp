// The scanner description: how many crystals there are, how they are numbered, where they are.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config/scanner/frame_version.hpp"
#include "config/scanner/geometry.hpp"
#include "config/scanner/rotation.hpp"

namespace petacq::config {

/// Sizes in mm. A module is a flat panel whose front face touches the circle of ring_radius_mm at its middle.
struct Dimensions {
    double ring_radius_mm = 0;      ///< axis to the front face of the crystals, at the middle of a module
    double crystal_pitch_y_mm = 0;  ///< centre to centre inside a block, transaxial
    double crystal_pitch_z_mm = 0;  ///< centre to centre inside a block, axial
    double crystal_length_mm = 0;   ///< radial
    double block_gap_y_mm = 0;      ///< added between neighbouring blocks of a module
    double block_gap_z_mm = 0;
    double module_gap_z_mm = 0;             ///< added between modules along the axis
    std::string crystal_material = "LYSO";  ///< of the table in config/scanner/crystal_material.hpp
    std::optional<double> crystal_attenuation_per_cm{};  ///< at 511 keV; absent: that of the material
};

/// A board or concentrator that sends frames. With an id it is a source of sequenced framing; without one it
/// has an address and a port, and is a source of bare framing.
struct Source {
    std::optional<std::uint16_t> id;
    std::string address;              ///< IPv4 address that it sends from; with an id "" means any
    std::uint16_t port = 0;           ///< that it sends from; 0 with an id
    std::vector<std::uint32_t> bdms;  ///< the modules whose frames it carries
};

class Arrangement;

/// A description has one of two forms. The short form is a ring: geometry and dimensions say all. The long
/// form describes any arrangement of crystals; then dimensions mean nothing, nor do the counts of a ring.
struct Scanner {
    std::string name;
    FrameVersion frame_version = FrameVersion::one;  ///< of the frames that its boards send
    Geometry geometry;
    double tick_ps = 0;  ///< picoseconds per tick of detector time
    Dimensions dimensions;
    std::vector<Source> sources;  ///< all with an id, or none; empty: the description does not list them
    std::shared_ptr<const Arrangement> arrangement{};   ///< of the long form
    std::shared_ptr<const nlohmann::json> long_form{};  ///< the description, with its defaults
    std::optional<Rotation> rotation{};                 ///< of the long form; absent: it stands still

    [[nodiscard]] bool is_ring() const { return !arrangement; }
};

/// Reads and checks a scanner description file. Throws config::Error with the key's path and the expectation.
Scanner load_scanner(const std::filesystem::path& file);
Scanner scanner_from_json(const nlohmann::json& document);
nlohmann::json to_json(const Scanner& scanner);

/// Ticks in `seconds` of detector time, rounded to the nearest; at most 2^63.
std::uint64_t ticks_of(double seconds, const Scanner& scanner);

/// Where a crystal is (docs/reference/geometry.md has the drawing). The axis of the scanner is z, its centre
/// the origin; crystal 0's module (module 0 of the ring) has its centre on +x, and module numbers rise
/// counter-clockwise seen from +z. Simulator, exports and images take every position from here. A scanner
/// that turns is at an angle of 0; turned() has the place at another.
struct CrystalPlace {
    Vector3 front_centre_mm;  ///< centre of the front face
    Vector3 outward;          ///< unit vector along the crystal, away from the axis
};
CrystalPlace crystal_place(const Scanner& scanner, std::uint32_t crystal);
CrystalPlace turned(const CrystalPlace& place, double radians);
/// The point inside the crystal, `depth_mm` behind the middle of its front face.
Vector3 point_at_depth(const CrystalPlace& place, double depth_mm);

}  // namespace petacq::config
