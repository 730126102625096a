// The crystal in a direction.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "config/scanner/scanner.hpp"

namespace petacq::estimate {

class CrystalFinder {
  public:
    /// `depth_mm`: of the points of crystals.
    CrystalFinder(const config::Scanner& scanner, double depth_mm);
    [[nodiscard]] const config::Vector3& point(std::uint32_t crystal) const { return points_[crystal]; }
    /// The crystal at a point, or beyond it as seen from the axis at `from_z`; nothing beyond the ends of the
    /// scanner. Of the long form, nothing in gaps either, nothing where crystals lie far before the point,
    /// such as those of an insert, and none of those far behind it.
    [[nodiscard]] std::optional<std::uint32_t> at(const config::Vector3& point, double from_z) const;

  private:
    void prepare_ring(const config::Scanner& scanner);
    void prepare_arrangement(const config::Scanner& scanner);
    [[nodiscard]] std::optional<std::uint32_t> at_arrangement(const config::Vector3& point,
                                                              double from_z) const;
    [[nodiscard]] std::optional<std::uint32_t> at_ring(const config::Vector3& point) const;
    [[nodiscard]] std::size_t bin_of(const config::Vector3& point) const;

    static constexpr std::uint32_t bins_per_column = 8;
    std::vector<config::Vector3> points_;
    // Of a ring.
    std::uint32_t columns_ = 0;           // 0: the long form
    std::vector<std::uint32_t> nearest_;  // [bin of the angle] column
    std::vector<double> z_;               // [ring]
    double reach_ = 0;
    // Of the long form.
    struct Seen {
        double slope;  ///< z / radius
        double angle;  ///< radians
        double radius;
        double half_angle;  ///< of its size, and a little more
        double half_z;      ///< mm, the same
        std::uint32_t crystal;
    };
    std::vector<std::vector<Seen>> seen_;  // [bin of the angle] that reach into it, by slope
    double least_radius_ = 0;
    double largest_half_slope_ = 0;
};

}  // namespace petacq::estimate
