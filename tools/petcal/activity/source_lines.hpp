// The place of a source, and where lines pass it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "config/scanner/depth_of_interaction.hpp"
#include "config/scanner/scanner.hpp"
#include "tools/petsim/random/random.hpp"

namespace petacq::petcal {

/// A point, or an even cylinder along the axis, in ten parts along it. Thread-safe.
class SourceLines {
  public:
    /// One of the two, mm: x, y, z of a point; x, y, z, radius, length of a cylinder. Throws config::Error.
    SourceLines(const config::Scanner& scanner, const std::vector<double>& point,
                const std::vector<double>& cylinder);

    [[nodiscard]] bool is_point() const { return length_mm_ == 0; }
    [[nodiscard]] std::size_t parts() const;
    /// 0: a point.
    [[nodiscard]] double volume_ml() const;

    enum class Zone : std::uint8_t {
        near,       ///< at most three widths of crystals from the source
        around,     ///< at two to four times this distance
        elsewhere,  ///< in no zone, or beyond the ends of the cylinder
    };
    struct Place {
        std::size_t part = 0;
        Zone zone = Zone::elsewhere;
    };
    /// Where the line of two crystals passes.
    [[nodiscard]] Place place(std::uint32_t a, std::uint32_t b) const;
    /// Where a decay happens, evenly drawn.
    [[nodiscard]] config::Vector3 draw(sim::Random& random) const;

  private:
    config::LineGeometry geometry_;
    double near_mm_;
    config::Vector3 middle_{};
    double radius_mm_ = 0;
    double length_mm_ = 0;  ///< 0: a point
};

}  // namespace petacq::petcal
