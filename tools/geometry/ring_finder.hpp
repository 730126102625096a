// Finds the crystal that a photon enters in a ring of equal modules, by arithmetic.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "tools/geometry/entry.hpp"
#include "tools/geometry/intervals.hpp"
#include "tools/geometry/vector.hpp"

namespace petacq::geometry {

/// The flat panels of a scanner of the short form. Thread-safe.
class RingFinder {
  public:
    explicit RingFinder(const config::Scanner& scanner);
    /// `direction` is a unit vector; `from` lies inside the ring.
    [[nodiscard]] std::optional<Entry> find(const Vector3& from, const Vector3& direction) const {
        const std::size_t panel = panel_ahead(from, direction);
        if (panel == panels_.size()) return std::nullopt;
        return enter(panel, from, direction);
    }
    /// The crystal that contains a point. Absent in a gap, and where no crystal is.
    [[nodiscard]] std::optional<std::uint32_t> crystal_at(const Vector3& point) const;
    [[nodiscard]] double radius_mm() const { return radius_; }
    /// No crystal has a point that is further from the axis.
    [[nodiscard]] double outer_radius_mm() const;
    [[nodiscard]] double axial_low_mm() const { return axial_.low(); }
    [[nodiscard]] double axial_high_mm() const { return axial_.high(); }

  private:
    struct Panel {
        double nx;
        double ny;
    };
    [[nodiscard]] std::size_t panel_ahead(const Vector3& from, const Vector3& direction) const;
    [[nodiscard]] std::optional<Entry> enter(std::size_t panel, const Vector3& from,
                                             const Vector3& direction) const;
    [[nodiscard]] std::size_t nearest_panel(double x, double y) const;
    [[nodiscard]] std::size_t panel_of_cell(double x, double y) const;

    double radius_;
    double crystal_length_;
    double half_sector_;  // half the width of a side of the polygon that the panels' planes make
    std::uint32_t crystals_per_module_;
    std::uint32_t crystals_in_ring_;
    Intervals transaxial_;
    Intervals axial_;
    std::vector<Panel> panels_;
    std::vector<std::uint16_t> panel_of_cell_;  // indexed by the angle around the axis
};

}  // namespace petacq::geometry
