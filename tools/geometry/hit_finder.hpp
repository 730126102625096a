// Finds the crystal that a photon enters: the inverse of config::crystal_place.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "config/scanner.hpp"

namespace petacq::geometry {

using config::Vector3;

/// Intervals of equal width on a line, with gaps between them; a lookup takes constant time.
class Intervals {
  public:
    static constexpr std::uint32_t none = UINT32_MAX;
    /// The centres may be in any order; the intervals must not overlap.
    Intervals(const std::vector<double>& centres, double width);
    /// The index of the interval that contains v, in the order of the centres; none in a gap or outside.
    [[nodiscard]] std::uint32_t find(double v) const {
        const double cell = (v - low_) * cells_per_mm_;
        if (!(cell >= 0) || cell >= static_cast<double>(first_.size())) return none;
        std::uint32_t i = first_[static_cast<std::size_t>(cell)];
        while (i < upper_.size() && v >= upper_[i])
            ++i;
        return i < upper_.size() && v >= upper_[i] - width_ ? index_[i] : none;
    }
    [[nodiscard]] double low() const { return low_; }
    [[nodiscard]] double high() const { return upper_.back(); }

  private:
    double width_;
    double low_ = 0;
    double cells_per_mm_ = 0;
    std::vector<double> upper_;
    std::vector<std::uint32_t> index_;
    std::vector<std::uint32_t> first_;  // [cell] first interval that ends beyond the cell's start
};

struct Entry {
    std::uint32_t crystal;
    double distance_mm;  ///< from the origin of the ray to the front face
};

/// The flat panels of a scanner. A photon that meets no front face enters no crystal. Thread-safe.
class HitFinder {
  public:
    explicit HitFinder(const config::Scanner& scanner);
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
