// Bins of the lines through two crystals, projected along the axis: a sinogram.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "config/scanner/depth_of_interaction.hpp"
#include "config/scanner/scanner.hpp"

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

    /// When the scanner turns by this angle about its axis, its lines move by this number of rows: rounded,
    /// and less than rows_of_turn().
    [[nodiscard]] std::uint32_t rows_turned(double radians) const;
    [[nodiscard]] std::uint32_t rows_of_turn() const { return 2 * angles_; }
    /// The bin to which a line of `bin` moves when it moves by `rows` rows. REQUIRES: bin is not `outside`.
    [[nodiscard]] std::uint32_t moved(std::uint32_t bin, std::uint32_t rows) const {
        const std::uint32_t row = bin / radial_ + rows;
        const std::uint32_t column = bin % radial_;
        // After half a turn a line has the other sign of s.
        const bool other_side = row / angles_ % 2 != 0;
        return row % angles_ * radial_ + (other_side ? radial_ - 1 - column : column);
    }
    /// Moves a whole sinogram by `rows` rows, multiplies it by `share` and adds it to `to`.
    void add_moved(std::span<const double> values, std::uint32_t rows, double share,
                   std::span<double> to) const {
        for (std::uint32_t bin = 0; bin < values.size(); ++bin)
            to[moved(bin, rows)] += share * values[bin];
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
