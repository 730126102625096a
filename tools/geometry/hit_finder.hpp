// Finds the crystal that a photon enters: the inverse of config::crystal_place.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "config/scanner/scanner.hpp"
#include "tools/geometry/entry.hpp"
#include "tools/geometry/module_finder.hpp"
#include "tools/geometry/ring_finder.hpp"
#include "tools/geometry/vector.hpp"

namespace petacq::geometry {

/// The crystals of any scanner. A photon that meets no front face enters no crystal. Thread-safe.
class HitFinder {
  public:
    explicit HitFinder(const config::Scanner& scanner);
    /// The first front face that the ray meets. `direction` is a unit vector; `from` lies in no crystal.
    [[nodiscard]] std::optional<Entry> find(const Vector3& from, const Vector3& direction) const {
        if (const RingFinder* const r = ring()) return r->find(from, direction);
        return modules()->find(from, direction);
    }
    /// The crystal that contains a point. Absent in a gap, and where no crystal is.
    [[nodiscard]] std::optional<std::uint32_t> crystal_at(const Vector3& point) const;
    /// No crystal has a point that is nearer to the axis.
    [[nodiscard]] double radius_mm() const;
    /// No crystal has a point that is further from the axis.
    [[nodiscard]] double outer_radius_mm() const;
    [[nodiscard]] double axial_low_mm() const;
    [[nodiscard]] double axial_high_mm() const;

    /// Of a scanner of the short form; else nullptr.
    [[nodiscard]] const RingFinder* ring() const { return std::get_if<RingFinder>(&finder_); }
    /// Of a scanner of the long form; else nullptr.
    [[nodiscard]] const ModuleFinder* modules() const { return std::get_if<ModuleFinder>(&finder_); }

  private:
    std::variant<RingFinder, ModuleFinder> finder_;
};

/// The distance from the axis of the nearest crystal whose layer reaches between these heights; infinite if
/// there is none. In the short form, the radius of the ring.
double free_radius_mm(const config::Scanner& scanner, double low_z_mm, double high_z_mm);

}  // namespace petacq::geometry
