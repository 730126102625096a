// Whether a line meets the field of view, by trying out the places where it can enter or leave.
#include <array>
#include <cstdlib>
#include <vector>

#include "tests/gpu/reference.hpp"

namespace petacq::test {

namespace {

using Whole = __int128;
using Triple = std::array<Whole, 3>;

// The place a + n / d (b - a), d times as large.
struct Fraction {
    Whole n;
    Whole d;
};
Triple place_at(const Triple& a, const Triple& b, Fraction t) {
    Triple place{};
    for (std::size_t i = 0; i < 3; ++i)
        place[i] = a[i] * t.d + (b[i] - a[i]) * t.n;
    return place;
}
bool within(Whole value, Whole limit) {
    return value <= limit && -value <= limit;
}

// Where the segment crosses the planes at -half and half on this axis.
void add_crossings(std::vector<Fraction>& to, Whole a, Whole b, Whole half) {
    if (a == b) return;
    for (const Whole plane : {-half, half}) {
        Fraction t{plane - a, b - a};
        if (t.d < 0) t = {-t.n, -t.d};
        if (t.n >= 0 && t.n <= t.d) to.push_back(t);
    }
}

}  // namespace

bool reference_line_meets(const config::FieldOfView& view, const config::PairGeometry::Crystal& a,
                          const config::PairGeometry::Crystal& b) {
    const Triple from{a.x_um, a.y_um, a.z_um};
    const Triple to{b.x_um, b.y_um, b.z_um};
    std::vector<Fraction> places{{0, 1}, {1, 1}};
    add_crossings(places, from[2], to[2], view.half_length_um);
    if (view.half_y_um == 0) {
        // The place nearest to the axis.
        const Triple u{to[0] - from[0], to[1] - from[1], 0};
        const Whole length = u[0] * u[0] + u[1] * u[1];
        const Whole along = -(from[0] * u[0] + from[1] * u[1]);
        if (along > 0 && along < length) {
            const Whole z = from[2] * length + (to[2] - from[2]) * along;
            const Whole r_squared = (from[0] * from[0] + from[1] * from[1]) * length - along * along;
            const Whole radius = view.half_x_um;
            if (within(z, view.half_length_um * length) && r_squared <= radius * radius * length) return true;
        }
    } else {
        add_crossings(places, from[0], to[0], view.half_x_um);
        add_crossings(places, from[1], to[1], view.half_y_um);
    }
    for (const Fraction& t : places) {
        const Triple p = place_at(from, to, t);
        const Whole x = view.half_x_um * t.d;
        const bool inside = view.half_y_um == 0 ? p[0] * p[0] + p[1] * p[1] <= x * x
                                                : within(p[0], x) && within(p[1], view.half_y_um * t.d);
        if (inside && within(p[2], view.half_length_um * t.d)) return true;
    }
    return false;
}

}  // namespace petacq::test
