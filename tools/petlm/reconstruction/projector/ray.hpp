// The voxels that a line crosses and the length in each (Siddon, Med. Phys. 12 (1985) 252), slab by slab of
// the axis along which the line is longest. The same source for the CPU and for CUDA.
#pragma once

#include <cmath>

#include "tools/petlm/reconstruction/projector/grid.hpp"

namespace petacq::image {

/// The parts of Grid that a walk through the voxels needs, for device code.
struct Box {
    double low[3];  // NOLINT(modernize-avoid-c-arrays)
    double voxel;
    std::int32_t n[3];  // NOLINT(modernize-avoid-c-arrays)
    /// Indices of voxels run along z first, then x, then y; else as in Grid.
    bool z_first = false;

    static Box of(const Grid& grid) {
        Box box{};
        box.voxel = grid.voxel_mm;
        for (std::size_t axis = 0; axis < 3; ++axis) {
            box.low[axis] = grid.low(axis);
            box.n[axis] = static_cast<std::int32_t>(grid.n[axis]);
        }
        return box;
    }
    [[nodiscard]] std::size_t voxels() const {
        return static_cast<std::size_t>(n[0]) * static_cast<std::size_t>(n[1]) *
               static_cast<std::size_t>(n[2]);
    }
    /// Difference of the indices of neighbours along an axis.
    [[nodiscard]] PETACQ_HD std::int32_t stride(int axis) const {
        if (z_first) return axis == 2 ? 1 : axis == 0 ? n[2] : n[2] * n[0];
        return axis == 0 ? 1 : axis == 1 ? n[0] : n[0] * n[1];
    }
};

/// The part of a line that lies in the box, between two fractions of its length.
///
/// A slab is as thick as a voxel. In it the line crosses at most one plane of each of the two other axes and
/// so meets at most three voxels. Slabs do not depend on each other: a loop over them has no branches.
class Ray {
  public:
    PETACQ_HD Ray(const Box& box, const Point& from, const Point& to, double begin = 0, double end = 1) {
        double in = begin > 0 ? begin : 0;
        double out = end < 1 ? end : 1;
        double squares = 0;
        // NOLINTBEGIN(modernize-avoid-c-arrays)
        double start[3];  // from the lower face
        double along[3];
        double inverse[3] = {};  // of `along`
        // NOLINTEND(modernize-avoid-c-arrays)
        for (int axis = 0; axis < 3; ++axis) {
            start[axis] = from.x[axis] - box.low[axis];
            along[axis] = static_cast<double>(to.x[axis]) - from.x[axis];
            squares += along[axis] * along[axis];
            const double width = box.n[axis] * box.voxel;
            if (along[axis] == 0) {
                if (start[axis] < 0 || start[axis] >= width) return;
                continue;
            }
            inverse[axis] = 1 / along[axis];
            const double one = -start[axis] * inverse[axis];
            const double other = (width - start[axis]) * inverse[axis];
            const double first = one < other ? one : other;
            const double last = one < other ? other : one;
            if (first > in) in = first;
            if (last < out) out = last;
        }
        if (!(out > in && squares > 0)) return;
        const int main = longest(along);
        const double per_voxel = 1 / box.voxel;
        const bool down = along[main] < 0;
        const auto voxels = [&](int axis, double at) { return (start[axis] + at * along[axis]) * per_voxel; };
        const auto ahead = [&](double at) {
            return down ? box.n[main] - voxels(main, at) : voxels(main, at);
        };
        const std::int32_t first = limited(static_cast<std::int32_t>(ahead(in)), box.n[main] - 1);
        const std::int32_t last = limited(static_cast<std::int32_t>(ahead(out)), box.n[main] - 1);
        slabs_ = last > first ? last - first + 1 : 1;
        in_ = static_cast<float>(ahead(in) - first);
        out_ = static_cast<float>(ahead(out) - first);
        const double length = std::sqrt(squares);
        const double slab = (down ? -inverse[main] : inverse[main]) * box.voxel;  // fraction of the line
        mm_ = static_cast<float>(slab * length);
        begin_ = in * length;
        length_ = (out - in) * length;
        stride_ = down ? -box.stride(main) : box.stride(main);
        first_ = (down ? box.n[main] - 1 - first : first) * box.stride(main);
        const auto across = [&](int axis) {
            const double slope = slab * along[axis] * per_voxel;
            return Across(voxels(axis, in) - slope * (ahead(in) - first), slope, box.n[axis] - 1,
                          box.stride(axis));
        };
        a_ = across(main == 0 ? 1 : 0);
        b_ = across(main == 2 ? 1 : 2);
    }

    [[nodiscard]] PETACQ_HD std::int32_t slabs() const { return slabs_; }
    /// Length inside the box, mm.
    [[nodiscard]] PETACQ_HD double length() const { return length_; }
    /// Where it begins, mm from the start of the line.
    [[nodiscard]] PETACQ_HD double begin() const { return begin_; }

    /// The voxels of a slab in the order of the line. Some are met with a length of 0; their indices are
    /// valid, too.
    struct Slab {
        // NOLINTBEGIN(modernize-avoid-c-arrays)
        std::int32_t voxel[3];
        float mm[3];
        float middle[3];  ///< of that length, mm from where the line enters the box
        // NOLINTEND(modernize-avoid-c-arrays)
    };
    [[nodiscard]] PETACQ_HD Slab slab(std::int32_t i) const {
        const auto low = static_cast<float>(i);
        const float from = in_ > low ? in_ : low;
        const float to = out_ < low + 1 ? out_ : low + 1;
        const Crossing a = a_.crossing(from, to);
        const Crossing b = b_.crossing(from, to);
        const float one = a.at < b.at ? a.at : b.at;
        const float other = a.at < b.at ? b.at : a.at;
        const std::int32_t voxel = first_ + i * stride_ + a.before + b.before;
        return {{voxel, voxel + (a.at < b.at ? a.step : b.step), voxel + a.step + b.step},
                {(one - from) * mm_, (other - one) * mm_, (to - other) * mm_},
                {middle(from, one), middle(one, other), middle(other, to)}};
    }

    /// Calls use(index of the voxel, mm) along the line.
    template <class Use>
    PETACQ_HD void walk(Use&& use) const {
        walk_places([&](std::uint32_t voxel, float mm, float /*middle*/) { use(voxel, mm); });
    }
    /// The same with Slab::middle.
    template <class Use>
    PETACQ_HD void walk_places(Use&& use) const {
        for (std::int32_t i = 0; i < slabs_; ++i) {
            const Slab of = slab(i);
            for (int k = 0; k < 3; ++k)
                if (of.mm[k] > 0) use(static_cast<std::uint32_t>(of.voxel[k]), of.mm[k], of.middle[k]);
        }
    }

  private:
    [[nodiscard]] PETACQ_HD static std::int32_t limited(std::int32_t cell, std::int32_t last) {
        const std::int32_t above = cell < 0 ? 0 : cell;
        return above > last ? last : above;
    }
    [[nodiscard]] PETACQ_HD static int longest(const double* along) {
        const double x = std::fabs(along[0]);
        const double y = std::fabs(along[1]);
        const double z = std::fabs(along[2]);
        return x >= y ? (x >= z ? 0 : 2) : (y >= z ? 1 : 2);
    }
    [[nodiscard]] PETACQ_HD float middle(float from, float to) const {
        return ((from + to) * 0.5F - in_) * mm_;
    }

    /// The plane of another axis that the line meets between two places of a slab.
    struct Crossing {
        float at;             ///< the end if it meets none
        std::int32_t before;  ///< share of the index before the plane
        std::int32_t step;    ///< of the index, behind it
    };
    /// The way along one of the other axes, by the place along the main one; all in voxels.
    class Across {
      public:
        Across() = default;
        PETACQ_HD Across(double at_0, double slope, std::int32_t last, std::int32_t stride)
            : at_0_(static_cast<float>(at_0)),
              slope_(static_cast<float>(slope)),
              inverse_(slope_ > flat || slope_ < -flat ? 1 / slope_ : 1 / flat),
              last_(last),
              stride_(stride),
              up_(slope_ < -flat ? 0 : 1) {}

        [[nodiscard]] PETACQ_HD Crossing crossing(float from, float to) const {
            const std::int32_t cell = limited(static_cast<std::int32_t>(at_0_ + slope_ * from), last_);
            const float plane = (static_cast<float>(cell + up_) - at_0_) * inverse_;
            const float above = plane > from ? plane : from;
            const std::int32_t next = limited(cell + 2 * up_ - 1, last_);
            return {above < to ? above : to, cell * stride_, (next - cell) * stride_};
        }

      private:
        static constexpr float flat = 1e-20F;  // no plane is met
        float at_0_ = 0;                       // at the lower face of the first slab
        float slope_ = 0;
        float inverse_ = 0;
        std::int32_t last_ = 0;
        std::int32_t stride_ = 0;
        std::int32_t up_ = 0;  // 1: towards higher voxels
    };

    std::int32_t slabs_ = 0;
    float in_ = 0;  // places along the main axis, in slabs from the lower face of the first one
    float out_ = 0;
    float mm_ = 0;  // of the line in a slab
    std::int32_t first_ = 0;
    std::int32_t stride_ = 0;
    Across a_;
    Across b_;
    double begin_ = 0;
    double length_ = 0;
};

}  // namespace petacq::image
