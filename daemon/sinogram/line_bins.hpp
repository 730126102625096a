// Bins of the lines through two crystals, projected along the axis: a sinogram.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "config/depth_of_interaction.hpp"
#include "config/scanner.hpp"

namespace petacq::sinogram {

/// The angle phi of a line and its distance s from the axis, with s = x cos phi + y sin phi for every point
/// on it and 0 <= phi < pi. Equal bins of both, of s from -radius to +radius. Thread-safe.
///
/// Crystals that differ in z alone share a *column*, and the lines of two columns a bin: that of the two
/// crystals nearest to the middle of the scanner. In a ring, the columns are the crystals of its first ring.
class LineBins {
  public:
    static constexpr std::uint32_t outside = UINT32_MAX;

    /// The radius is that of the furthest front face, in a ring that of the ring. Lines end at this depth.
    /// REQUIRES: `angles` and `radial` above 0.
    LineBins(const config::Scanner& scanner, const config::DepthOfInteraction& depth, std::uint32_t angles,
             std::uint32_t radial);
    /// Angles as fine as the crystals: in a ring half as many as it has crystals.
    static std::uint32_t angles_of(const config::Scanner& scanner);
    /// Bins of s about as wide as `width_mm` from -radius to +radius.
    static std::uint32_t radial_of(const config::Scanner& scanner, double width_mm);

    [[nodiscard]] std::uint32_t angles() const { return angles_; }
    [[nodiscard]] std::uint32_t radial() const { return radial_; }
    [[nodiscard]] double radius_mm() const { return radius_; }
    [[nodiscard]] double width_mm() const { return 2 * radius_ / radial_; }
    [[nodiscard]] double angle_deg(std::uint32_t row) const { return (row + 0.5) * 180 / angles_; }
    [[nodiscard]] double radial_mm(std::uint32_t column) const {
        return (column + 0.5) * 2 * radius_ / radial_ - radius_;
    }
    /// angle * radial() + column of the bin for two crystals, or `outside`.
    [[nodiscard]] std::uint32_t of(std::uint32_t crystal_a, std::uint32_t crystal_b) const {
        return of_columns(column_of_[crystal_a], column_of_[crystal_b]);
    }

    [[nodiscard]] std::size_t crystals() const { return column_of_.size(); }
    [[nodiscard]] std::uint32_t columns() const { return static_cast<std::uint32_t>(middles_.size()); }
    [[nodiscard]] std::uint32_t column_of(std::uint32_t crystal) const { return column_of_[crystal]; }
    [[nodiscard]] std::uint32_t of_columns(std::uint32_t a, std::uint32_t b) const {
        return table_.empty() ? line(a, b) : table_[std::size_t{a} * middles_.size() + b];
    }

  private:
    void find_columns(const config::Scanner& scanner);
    [[nodiscard]] std::uint32_t line(std::uint32_t a, std::uint32_t b) const;

    std::uint32_t angles_;
    std::uint32_t radial_;
    double radius_;
    config::LineGeometry lines_;
    std::vector<std::uint32_t> column_of_;  ///< [crystal]
    std::vector<std::uint32_t> middles_;    ///< [column] its crystal nearest to the middle of the scanner
    std::vector<std::uint32_t> table_;      ///< of all pairs of columns; empty if that would be too large
};

}  // namespace petacq::sinogram
