// Whether the line between two crystals meets the field of view. Whole numbers only, so that every back-end
// decides the same.
#pragma once

#include <cstdint>

#include "config/scanner/channel_map.hpp"
#include "net/wire.hpp"

namespace petacq::gpu {

namespace detail {

using Wide = __int128;

struct PointUm {
    std::int64_t x;
    std::int64_t y;
    std::int64_t z;
};
PETACQ_HD inline PointUm front_of(const config::PairGeometry::Crystal& crystal) {
    return {crystal.x_um, crystal.y_um, crystal.z_um};
}

/// The part of the segment between the two end planes of the cylinder goes from low + n0 / d (high - low) to
/// low + n1 / d (high - low). Seen along the axis, and d times as large, it goes from p to q. It meets the
/// circle if one end lies inside, or if the nearest point of its line to the axis lies between the ends and
/// inside: |low x u| <= r |u| for the direction u of the segment.
PETACQ_HD inline bool meets_cylinder(PointUm low, PointUm high, std::int64_t radius,
                                     std::int64_t half_length) {
    if (low.z > high.z) {
        const PointUm lower = high;
        high = low;
        low = lower;
    }
    std::int64_t d = high.z - low.z;
    const std::int64_t from_below = -half_length - low.z;
    const std::int64_t from_above = half_length - low.z;
    const std::int64_t n0 = from_below > 0 ? from_below : 0;
    std::int64_t n1 = from_above < d ? from_above : d;
    if (n0 > n1) return false;
    if (d == 0) d = n1 = 1;  // all of the segment lies between the planes
    const std::int64_t ux = high.x - low.x;
    const std::int64_t uy = high.y - low.y;
    const std::int64_t px = low.x * d + ux * n0;
    const std::int64_t py = low.y * d + uy * n0;
    const std::int64_t qx = low.x * d + ux * n1;
    const std::int64_t qy = low.y * d + uy * n1;
    const Wide within = Wide{radius * d} * (radius * d);
    if (Wide{px} * px + Wide{py} * py <= within || Wide{qx} * qx + Wide{qy} * qy <= within) return true;
    if (Wide{px} * ux + Wide{py} * uy >= 0 || Wide{qx} * ux + Wide{qy} * uy <= 0) return false;
    const std::int64_t beside = low.x * uy - low.y * ux;
    return Wide{beside} * beside <= Wide{radius * radius} * (ux * ux + uy * uy);
}

/// The part of a segment, from a low to a high fraction of its length, that is not yet known to lie outside.
struct Fractions {
    std::int64_t low = 0;
    std::int64_t low_of = 1;
    std::int64_t high = 1;
    std::int64_t high_of = 1;

    /// Leaves what lies within `half` of the middle of one axis, along which the segment goes from a to b.
    PETACQ_HD void clip(std::int64_t a, std::int64_t b, std::int64_t half) {
        std::int64_t length = b - a;
        if (length < 0) {
            a = -a;
            length = -length;
        }
        if (length == 0) {
            if (a < -half || a > half) high = -1;  // nothing is left
            return;
        }
        if ((-half - a) * low_of > low * length) {
            low = -half - a;
            low_of = length;
        }
        if ((half - a) * high_of < high * length) {
            high = half - a;
            high_of = length;
        }
    }
    [[nodiscard]] PETACQ_HD bool any_left() const { return low * high_of <= high * low_of; }
};

}  // namespace detail

/// Whether the segment between the middles of the two front faces meets the field of view, borders included.
/// Positions are within config::PairGeometry::max_position_mm, so that no product overflows.
PETACQ_HD inline bool line_meets(config::FieldOfView view, const config::PairGeometry::Crystal& a,
                                 const config::PairGeometry::Crystal& b) {
    const detail::PointUm p = detail::front_of(a);
    const detail::PointUm q = detail::front_of(b);
    if (view.half_y_um == 0) return detail::meets_cylinder(p, q, view.half_x_um, view.half_length_um);
    detail::Fractions left;
    left.clip(p.x, q.x, view.half_x_um);
    left.clip(p.y, q.y, view.half_y_um);
    left.clip(p.z, q.z, view.half_length_um);
    return left.any_left();
}

}  // namespace petacq::gpu
