// Where the crystals of a detector unit lie in its flood map.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "config/scanner/scanner.hpp"

namespace petacq::config {

/// A flood map before any distortion: a point has u and v from -1 to 1 in the directions of x and y. The
/// layers of a unit lie side by side in fields of equal size, the first one at low u and v. In its field a
/// layer is a grid: columns along u in the order of z, rows along v against the order of y.
class FloodLayout {
  public:
    /// REQUIRES: a unit that exists. `unit`: bdm * du_count + du.
    FloodLayout(const Scanner& scanner, std::uint32_t unit);

    struct UnitPoint {
        double u;
        double v;
    };
    /// Columns and rows from the middle of a local crystal.
    [[nodiscard]] UnitPoint point(std::uint32_t local, double columns, double rows) const;
    /// The local crystal at a point. None outside, and within half a gap of a neighbour; `gap`: of the width
    /// of a column or row, by their number in the whole map.
    template <class Gap>
    [[nodiscard]] std::optional<std::uint32_t> crystal_at(UnitPoint point, Gap gap) const {
        const auto field_u = FloodField::of(point.u, across_);
        const auto field_v = FloodField::of(point.v, down_);
        if (!field_u || !field_v) return std::nullopt;
        const std::size_t number = field_v->number * std::size_t{across_} + field_u->number;
        if (number >= layers_.size()) return std::nullopt;
        const Layer& layer = layers_[number];
        const auto column = FloodField::part(field_u->inside, layer.columns, gap(across_ * layer.columns));
        const auto row = FloodField::part(field_v->inside, layer.rows, gap(down_ * layer.rows));
        if (!column || !row) return std::nullopt;
        return layer.first + (layer.rows - 1 - *row) * layer.columns + *column;
    }
    /// The number of columns, or rows, that would fill the whole map if all were as wide as this crystal's.
    [[nodiscard]] std::uint32_t columns(std::uint32_t local) const {
        return across_ * layer_of(local).columns;
    }
    [[nodiscard]] std::uint32_t rows(std::uint32_t local) const { return down_ * layer_of(local).rows; }

    struct Layer {
        std::uint32_t first;  ///< its first local crystal
        std::uint32_t columns;
        std::uint32_t rows;
    };
    [[nodiscard]] const std::vector<Layer>& layers() const { return layers_; }
    [[nodiscard]] std::uint32_t fields_across() const { return across_; }
    [[nodiscard]] std::uint32_t fields_down() const { return down_; }

  private:
    struct FloodField {
        std::uint32_t number;
        double inside;  ///< 0 to 1
        static std::optional<FloodField> of(double u, std::uint32_t count) {
            const double place = (u + 1) / 2 * count;
            if (!(place >= 0 && place < count)) return std::nullopt;
            const auto number = static_cast<std::uint32_t>(place);
            return FloodField{number, place - number};
        }
        static std::optional<std::uint32_t> part(double inside, std::uint32_t count, double gap) {
            const double place = inside * count;
            if (!(place >= 0 && place < count)) return std::nullopt;
            const auto number = static_cast<std::uint32_t>(place);
            const double beyond = place - number;
            if (beyond < gap / 2 || beyond > 1 - gap / 2) return std::nullopt;
            return number;
        }
    };
    [[nodiscard]] const Layer& layer_of(std::uint32_t local) const;

    std::vector<Layer> layers_;
    std::uint32_t across_ = 1;  ///< fields along u
    std::uint32_t down_ = 1;
};

}  // namespace petacq::config
