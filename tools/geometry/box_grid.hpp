// Which boxes of crystals a ray meets: they are in the cells of a grid.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "config/scanner/layer_box.hpp"
#include "tools/geometry/vector.hpp"

namespace petacq::geometry {

/// Thread-safe. A ray looks only at the boxes of the cells on its way.
class BoxGrid {
  public:
    /// There is at least one box. They may touch, but must not overlap.
    explicit BoxGrid(std::vector<config::LayerBox> boxes);

    /// A ray inside a box: distances from its origin.
    struct BoxCrossing {
        std::uint32_t box;
        double enter;
        double leave;
    };
    /// The first one that does not end before the distance `after`; it begins there if the ray is inside.
    [[nodiscard]] std::optional<BoxCrossing> next(const Vector3& from, const Vector3& direction,
                                                  double after) const;
    /// The first box that contains the point.
    [[nodiscard]] std::optional<std::uint32_t> at(const Vector3& point) const;
    [[nodiscard]] const std::vector<config::LayerBox>& boxes() const { return boxes_; }
    /// Along z, of all boxes.
    [[nodiscard]] double low_z() const { return low_[2]; }
    [[nodiscard]] double high_z() const { return high_[2]; }

  private:
    using Cell = std::array<std::int32_t, 3>;

    [[nodiscard]] Cell cell_of(const Vector3& point) const;
    [[nodiscard]] std::size_t index(const Cell& cell) const;

    std::vector<config::LayerBox> boxes_;
    Vector3 low_{};
    Vector3 high_{};
    Cell count_{};
    Vector3 size_{};                    ///< of a cell
    std::vector<std::uint32_t> first_;  ///< [cell] where its boxes begin in `members_`; one more at the end
    std::vector<std::uint32_t> members_;
};

}  // namespace petacq::geometry
