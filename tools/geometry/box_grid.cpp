#include "tools/geometry/box_grid.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace petacq::geometry {

namespace {

constexpr double rounding_mm = 1e-9;
constexpr double infinity = std::numeric_limits<double>::infinity();

/// The part of a ray between two planes.
struct Stretch {
    double enter = -infinity;
    double leave = infinity;

    /// Cuts it to where `at + t * speed` lies within low and high.
    void cut(double at, double speed, double low, double high) {
        if (speed == 0) {
            if (at < low || at > high) leave = -infinity;
            return;
        }
        const double a = (low - at) / speed;
        const double b = (high - at) / speed;
        enter = std::max(enter, std::min(a, b));
        leave = std::min(leave, std::max(a, b));
    }
};

Stretch inside(const config::LayerBox& box, const Vector3& from, const Vector3& direction) {
    const Vector3 off{from[0] - box.middle[0], from[1] - box.middle[1], from[2] - box.middle[2]};
    Stretch part;
    for (std::size_t axis = 0; axis < 3; ++axis)
        part.cut(dot(off, box.axes[axis]), dot(direction, box.axes[axis]), -box.half[axis], box.half[axis]);
    return part;
}

struct Bounds {
    Vector3 low;
    Vector3 high;
};

/// Parallel to the axes.
Bounds bounds_of(const config::LayerBox& box) {
    Bounds b{box.middle, box.middle};
    for (std::size_t i = 0; i < 3; ++i) {
        for (std::size_t axis = 0; axis < 3; ++axis) {
            const double reach = box.half[axis] * std::abs(box.axes[axis][i]);
            b.low[i] -= reach;
            b.high[i] += reach;
        }
    }
    return b;
}

}  // namespace

BoxGrid::BoxGrid(std::vector<config::LayerBox> boxes) : boxes_(std::move(boxes)) {
    constexpr double cells_per_box = 8;
    constexpr double most_cells = 256;  // along one axis
    low_ = {infinity, infinity, infinity};
    high_ = {-infinity, -infinity, -infinity};
    for (const config::LayerBox& box : boxes_) {
        const Bounds b = bounds_of(box);
        for (std::size_t i = 0; i < 3; ++i) {
            low_[i] = std::min(low_[i], b.low[i] - rounding_mm);
            high_[i] = std::max(high_[i], b.high[i] + rounding_mm);
        }
    }
    const double volume = (high_[0] - low_[0]) * (high_[1] - low_[1]) * (high_[2] - low_[2]);
    const double edge = std::cbrt(volume / (cells_per_box * static_cast<double>(boxes_.size())));
    for (std::size_t i = 0; i < 3; ++i) {
        count_[i] =
            static_cast<std::int32_t>(std::clamp(std::ceil((high_[i] - low_[i]) / edge), 1.0, most_cells));
        size_[i] = (high_[i] - low_[i]) / count_[i];
    }
    const auto each_cell = [&](const config::LayerBox& box, const auto& use) {
        const Bounds b = bounds_of(box);
        const Cell first = cell_of({b.low[0] - rounding_mm, b.low[1] - rounding_mm, b.low[2] - rounding_mm});
        const Cell last =
            cell_of({b.high[0] + rounding_mm, b.high[1] + rounding_mm, b.high[2] + rounding_mm});
        for (std::int32_t z = first[2]; z <= last[2]; ++z) {
            for (std::int32_t y = first[1]; y <= last[1]; ++y) {
                for (std::int32_t x = first[0]; x <= last[0]; ++x)
                    use(index({x, y, z}));
            }
        }
    };
    first_.resize(index({0, 0, count_[2]}) + 1);
    for (const config::LayerBox& box : boxes_)
        each_cell(box, [&](std::size_t cell) { ++first_[cell + 1]; });
    for (std::size_t cell = 1; cell < first_.size(); ++cell)
        first_[cell] += first_[cell - 1];
    members_.resize(first_.back());
    std::vector<std::uint32_t> fill = first_;
    for (std::uint32_t m = 0; m < boxes_.size(); ++m)
        each_cell(boxes_[m], [&](std::size_t cell) { members_[fill[cell]++] = m; });
}

BoxGrid::Cell BoxGrid::cell_of(const Vector3& point) const {
    Cell cell{};
    for (std::size_t i = 0; i < 3; ++i) {
        const double place = std::clamp((point[i] - low_[i]) / size_[i], 0.0, count_[i] - 1.0);
        cell[i] = static_cast<std::int32_t>(place);
    }
    return cell;
}

std::size_t BoxGrid::index(const Cell& cell) const {
    return static_cast<std::size_t>((std::int64_t{cell[2]} * count_[1] + cell[1]) * count_[0] + cell[0]);
}

std::optional<BoxGrid::BoxCrossing> BoxGrid::next(const Vector3& from, const Vector3& direction,
                                                  double after) const {
    Stretch whole;
    for (std::size_t i = 0; i < 3; ++i)
        whole.cut(from[i], direction[i], low_[i], high_[i]);
    double at = std::max(after, whole.enter);
    if (!(at <= whole.leave)) return std::nullopt;

    Cell cell =
        cell_of({from[0] + at * direction[0], from[1] + at * direction[1], from[2] + at * direction[2]});
    Vector3 border{};  // distances at which the ray leaves the cell along each axis
    Vector3 pitch{};   // and further cells
    for (std::size_t i = 0; i < 3; ++i) {
        border[i] = infinity;
        if (direction[i] == 0) continue;
        pitch[i] = size_[i] / std::abs(direction[i]);
        border[i] = (low_[i] + (cell[i] + (direction[i] > 0 ? 1 : 0)) * size_[i] - from[i]) / direction[i];
    }
    std::optional<BoxCrossing> best;
    for (;;) {
        const std::size_t here = index(cell);
        for (std::uint32_t i = first_[here]; i < first_[here + 1]; ++i) {
            const Stretch part = inside(boxes_[members_[i]], from, direction);
            if (part.leave <= after + rounding_mm || part.leave <= part.enter) continue;
            const double enter = std::max(part.enter, after);
            if (!best || enter < best->enter) best = BoxCrossing{members_[i], enter, part.leave};
        }
        const std::size_t axis =
            static_cast<std::size_t>(std::min_element(border.begin(), border.end()) - border.begin());
        if (best && best->enter <= border[axis]) return best;
        cell[axis] += direction[axis] > 0 ? 1 : -1;
        if (cell[axis] < 0 || cell[axis] >= count_[axis]) return best;
        border[axis] += pitch[axis];
    }
}

std::optional<std::uint32_t> BoxGrid::at(const Vector3& point) const {
    for (std::size_t i = 0; i < 3; ++i)
        if (point[i] < low_[i] || point[i] > high_[i]) return std::nullopt;
    const std::size_t cell = index(cell_of(point));
    for (std::uint32_t i = first_[cell]; i < first_[cell + 1]; ++i) {
        const config::LayerBox& box = boxes_[members_[i]];
        const Vector3 off{point[0] - box.middle[0], point[1] - box.middle[1], point[2] - box.middle[2]};
        bool in = true;
        for (std::size_t axis = 0; axis < 3; ++axis)
            in = in && std::abs(dot(off, box.axes[axis])) <= box.half[axis];
        if (in) return members_[i];
    }
    return std::nullopt;
}

}  // namespace petacq::geometry
