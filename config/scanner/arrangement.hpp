// Where the crystals of any scanner are: types of modules, modules in space, and the numbers of crystals.
// docs/reference/geometry.md has the drawing. Everything that knows where a crystal is asks this.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/scanner/scanner.hpp"

namespace petacq::config {

/// Crystals side by side along one direction of a layer, mm from the middle of the module.
struct CrystalRow {
    std::vector<double> centres;  ///< rising
    std::vector<double> sizes;    ///< of each crystal in this direction

    [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(centres.size()); }
    [[nodiscard]] double low() const { return centres.front() - sizes.front() / 2; }
    [[nodiscard]] double high() const { return centres.back() + sizes.back() / 2; }
};

/// A layer of crystals of a module: columns along y, rows along z.
struct CrystalLayer {
    CrystalRow y;
    CrystalRow z;
    double front_mm = 0;  ///< of its crystals, behind the front face of the module
    double length_mm = 0;
    std::string material = "LYSO";               ///< of the table in config/scanner/crystal_material.hpp
    std::optional<double> attenuation_per_cm{};  ///< at 511 keV; absent: that of the material

    [[nodiscard]] std::uint32_t crystal_count() const { return y.count() * z.count(); }
};

struct ModuleType {
    std::string name;
    std::vector<CrystalLayer> layers;            ///< from the front; at least one
    std::optional<double> time_resolution_ps{};  ///< FWHM of one single
    std::optional<double> energy_resolution{};   ///< FWHM at 511 keV, a fraction

    [[nodiscard]] std::uint32_t crystal_count() const;
    /// From the front of the module to the end of its last layer.
    [[nodiscard]] double length_mm() const;
};

/// The place of a module among those around the axis.
struct Around {
    std::uint32_t index = 0;
    std::uint32_t count = 0;  ///< modules around the ring
    bool operator==(const Around&) const = default;
};

struct Module {
    std::uint32_t type = 0;
    std::string name;    ///< of the group of modules that good pairs name; may be empty
    Vector3 front_mm{};  ///< middle of the front face
    Vector3 outward{};   ///< unit vectors, at right angles: along_y x along_z = outward
    Vector3 along_y{};
    Vector3 along_z{};
    std::optional<Around> around{};   ///< of a ring, an arc or a polygon
    std::uint32_t first_crystal = 0;  ///< long form: the number of its first crystal
};

struct CrystalAddress {
    std::uint32_t module = 0;
    std::uint32_t layer = 0;
    std::uint32_t column = 0;  ///< along y
    std::uint32_t row = 0;     ///< along z
    bool operator==(const CrystalAddress&) const = default;
};

/// Immutable once built, so threads may share it.
class Arrangement {
  public:
    /// Numbers the crystals module by module, layer by layer, column by column.
    Arrangement(std::vector<ModuleType> types, std::vector<Module> modules);
    /// The ring of the short form, with its own numbers. A module is a BDM.
    Arrangement(const Geometry& geometry, const Dimensions& dimensions);

    [[nodiscard]] const std::vector<ModuleType>& types() const { return types_; }
    [[nodiscard]] const std::vector<Module>& modules() const { return modules_; }
    [[nodiscard]] std::uint32_t crystal_count() const { return crystal_count_; }
    [[nodiscard]] const ModuleType& type_of(const Module& module) const { return types_[module.type]; }

    /// REQUIRES: an address of this arrangement.
    [[nodiscard]] std::uint32_t crystal(const CrystalAddress& address) const;
    /// These throw std::out_of_range for a crystal that does not exist.
    [[nodiscard]] CrystalAddress address(std::uint32_t crystal) const;
    [[nodiscard]] CrystalPlace place(std::uint32_t crystal) const;
    [[nodiscard]] const CrystalLayer& layer_of(std::uint32_t crystal) const;

  private:
    std::vector<ModuleType> types_;
    std::vector<Module> modules_;
    std::uint32_t crystal_count_ = 0;
    std::optional<Geometry> ring_{};  ///< the short form, which fixes the numbers
};

/// That of the scanner; made anew if its description has the short form.
std::shared_ptr<const Arrangement> arrangement_of(const Scanner& scanner);

}  // namespace petacq::config
