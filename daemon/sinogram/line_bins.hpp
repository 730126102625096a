// Bins of the lines through two crystals of one ring: a sinogram.
#pragma once

#include <cstdint>
#include <vector>

#include "config/depth_of_interaction.hpp"
#include "config/scanner.hpp"

namespace petacq::sinogram {

/// The angle phi of a line and its distance s from the axis, with s = x cos phi + y sin phi for every point
/// on it and 0 <= phi < pi. Equal bins of both, of s from -radius to +radius. Thread-safe.
class LineBins {
  public:
    static constexpr std::uint32_t outside = UINT32_MAX;

    /// The radius is that of the ring. Lines end at this depth. REQUIRES: `angles` and
    /// `radial` above 0.
    LineBins(const config::Scanner& scanner, const config::DepthOfInteraction& depth, std::uint32_t angles,
             std::uint32_t radial);
    /// Bins of s about as wide as `width_mm` from -radius to +radius of the ring.
    static std::uint32_t radial_of(const config::Scanner& scanner, double width_mm);

    [[nodiscard]] std::uint32_t angles() const { return angles_; }
    [[nodiscard]] std::uint32_t radial() const { return radial_; }
    [[nodiscard]] double radius_mm() const { return radius_; }
    [[nodiscard]] double width_mm() const { return 2 * radius_ / radial_; }
    [[nodiscard]] double angle_deg(std::uint32_t row) const { return (row + 0.5) * 180 / angles_; }
    [[nodiscard]] double radial_mm(std::uint32_t column) const {
        return (column + 0.5) * 2 * radius_ / radial_ - radius_;
    }
    /// angle * radial() + column for the positions of two crystals in their rings, or `outside`.
    [[nodiscard]] std::uint32_t of(std::uint32_t a, std::uint32_t b) const {
        return table_.empty() ? line(a, b) : table_[std::size_t{a} * ring_.size() + b];
    }

  private:
    [[nodiscard]] std::uint32_t line(std::uint32_t a, std::uint32_t b) const;

    std::uint32_t angles_;
    std::uint32_t radial_;
    double radius_;
    std::vector<config::CrystalPlace> ring_;
    config::DepthOfInteraction depth_;
    std::vector<std::uint32_t> table_;  ///< of all pairs; empty if that would be too large
};

}  // namespace petacq::sinogram
