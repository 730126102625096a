// The voxels that a line crosses and the length in each: Siddon, Med. Phys. 12 (1985) 252, walked plane by
// plane. The same source for the CPU and for CUDA.
#pragma once

#include <cmath>

#include "tools/petlm/reconstruction/projector/grid.hpp"

namespace petacq::image {

/// The parts of Grid that a walk through the voxels needs, for device code.
struct Box {
    double low[3];  // NOLINT(modernize-avoid-c-arrays)
    double voxel;
    std::int32_t n[3];  // NOLINT(modernize-avoid-c-arrays)

    static Box of(const Grid& grid) {
        Box box{};
        box.voxel = grid.voxel_mm;
        for (std::size_t axis = 0; axis < 3; ++axis) {
            box.low[axis] = grid.low(axis);
            box.n[axis] = static_cast<std::int32_t>(grid.n[axis]);
        }
        return box;
    }
};

/// The part of a line that lies in the box, between two fractions of its length.
class Ray {
  public:
    PETACQ_HD Ray(const Box& box, const Point& from, const Point& to, double begin = 0, double end = 1)
        : box_(box), in_(begin > 0 ? begin : 0), out_(end < 1 ? end : 1) {
        double squares = 0;
        for (int axis = 0; axis < 3; ++axis) {
            from_[axis] = from.x[axis];
            along_[axis] = static_cast<double>(to.x[axis]) - from_[axis];
            squares += along_[axis] * along_[axis];
            const double high = box.low[axis] + box.n[axis] * box.voxel;
            if (along_[axis] == 0) {
                if (from_[axis] < box.low[axis] || from_[axis] >= high) return;
                continue;
            }
            const double one = (box.low[axis] - from_[axis]) / along_[axis];
            const double other = (high - from_[axis]) / along_[axis];
            const double first = one < other ? one : other;
            const double last = one < other ? other : one;
            if (first > in_) in_ = first;
            if (last < out_) out_ = last;
        }
        if (!(out_ > in_)) return;
        length_ = std::sqrt(squares);
        cells_ = 1;
        for (int axis = 0; axis < 3; ++axis) {
            cell_[axis] = cell(axis, in_);
            const std::int32_t steps = along_[axis] < 0   ? cell_[axis] - cell(axis, out_)
                                       : along_[axis] > 0 ? cell(axis, out_) - cell_[axis]
                                                          : 0;
            left_[axis] = steps > 0 ? steps : 0;
            cells_ += static_cast<std::uint32_t>(left_[axis]);
        }
    }

    /// Number of voxels that walk() visits; some with length 0, where the line meets an edge.
    PETACQ_HD std::uint32_t cells() const { return cells_; }
    /// Length inside the box, mm.
    PETACQ_HD double length() const { return cells_ == 0 ? 0 : (out_ - in_) * length_; }
    /// Where it begins, mm from the start of the line.
    PETACQ_HD double begin() const { return in_ * length_; }

    /// Calls use(index of the voxel, mm) along the line.
    template <class Use>
    PETACQ_HD void walk(Use&& use) const {
        if (cells_ == 0) return;
        // Scalars only, and the same three lines for each axis: most of the time of an image is spent here.
        Axis x = axis(0, 1);
        Axis y = axis(1, box_.n[0]);
        Axis z = axis(2, box_.n[0] * box_.n[1]);
        std::int32_t index = cell_[0] + cell_[1] * box_.n[0] + cell_[2] * box_.n[0] * box_.n[1];
        double at = in_;
        for (std::uint32_t cell = 1; cell < cells_; ++cell) {
            const std::int32_t here = index;
            double to = 0;
            if (x.next <= y.next && x.next <= z.next) {
                to = x.next;
                index += x.take();
            } else if (y.next <= z.next) {
                to = y.next;
                index += y.take();
            } else {
                to = z.next;
                index += z.take();
            }
            // Rounding may place a plane before the point reached, or after the end.
            to = to < at ? at : to;
            to = to > out_ ? out_ : to;
            use(static_cast<std::uint32_t>(here), static_cast<float>((to - at) * length_));
            at = to;
        }
        use(static_cast<std::uint32_t>(index), static_cast<float>((out_ - at) * length_));
    }

  private:
    /// The planes still to be crossed along one axis.
    struct Axis {
        double next;   ///< position of the next one; beyond any line if there is none
        double apart;  ///< distance between two of them
        std::int32_t left;
        std::int32_t stride;  ///< of the index, from this voxel to the one after the plane

        PETACQ_HD std::int32_t take() {
            next = --left > 0 ? next + apart : 1e300;
            return stride;
        }
    };
    PETACQ_HD Axis axis(int i, std::int32_t stride) const {
        Axis axis{1e300, 0, left_[i], along_[i] > 0 ? stride : -stride};
        if (axis.left == 0) return axis;
        const double plane = box_.low[i] + (cell_[i] + (along_[i] > 0 ? 1 : 0)) * box_.voxel;
        axis.next = (plane - from_[i]) / along_[i];
        axis.apart = box_.voxel / std::fabs(along_[i]);
        return axis;
    }

    PETACQ_HD std::int32_t cell(int axis, double at) const {
        const double i = std::floor((from_[axis] + at * along_[axis] - box_.low[axis]) / box_.voxel);
        const std::int32_t last = box_.n[axis] - 1;
        return i < 0 ? 0 : i > last ? last : static_cast<std::int32_t>(i);
    }
    Box box_;
    double in_;  // fractions of the distance between the points
    double out_;
    // NOLINTBEGIN(modernize-avoid-c-arrays)
    double from_[3] = {};
    double along_[3] = {};
    std::int32_t cell_[3] = {};  // where the ray enters
    std::int32_t left_[3] = {};  // planes that it crosses after that
    // NOLINTEND(modernize-avoid-c-arrays)
    double length_ = 0;
    std::uint32_t cells_ = 0;
};

}  // namespace petacq::image
