// Chords and path differences against points along the line.
#include "tools/petcal/estimate/pairs/known_source.hpp"

#include <algorithm>
#include <cmath>

#include "tests/support/catch.hpp"
#include "tools/petsim/random/random.hpp"

using namespace petacq;
using estimate::Vector3;

namespace {

double length(const Vector3& v) {
    return std::hypot(v[0], v[1], v[2]);
}

Vector3 between(const Vector3& a, const Vector3& b, double part) {
    Vector3 p{};
    for (std::size_t i = 0; i < 3; ++i)
        p[i] = a[i] + part * (b[i] - a[i]);
    return p;
}

Vector3 minus(const Vector3& a, const Vector3& b) {
    return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}

/// By its definition: between the planes at both ends, and near the axis.
bool inside(const estimate::KnownSource& s, const Vector3& p) {
    const Vector3 axis = minus(s.to, s.from);
    const Vector3 offset = minus(p, s.from);
    const double square = axis[0] * axis[0] + axis[1] * axis[1] + axis[2] * axis[2];
    if (square == 0) return length(offset) <= s.radius_mm;
    const double part = (axis[0] * offset[0] + axis[1] * offset[1] + axis[2] * offset[2]) / square;
    return part >= 0 && part <= 1 && length(minus(p, between(s.from, s.to, part))) <= s.radius_mm;
}

}  // namespace

TEST_CASE("path differences are the means over the points of a line in the source") {
    sim::Random random(4, sim::Purpose::events, 0);
    const auto anywhere = [&](double size) {
        return Vector3{size * random.symmetric(), size * random.symmetric(), size * random.symmetric()};
    };
    constexpr int points = 2000;
    int met = 0;
    for (int i = 0; i < 400; ++i) {
        estimate::KnownSource source{anywhere(20), anywhere(20), 2 + 20 * random.uniform()};
        if (i % 4 == 1) source.to = source.from;
        if (i % 4 == 2) source.to = {source.from[0], source.from[1], source.to[2]};
        const Vector3 a = anywhere(60);
        Vector3 b = between(a, anywhere(15), 2);
        if (i % 40 == 2) b = {a[0], a[1], b[2]};  // along the cylinder
        double sum = 0;
        double count = 0;
        for (int k = 0; k < points; ++k) {
            const Vector3 p = between(a, b, (k + 0.5) / points);
            if (!inside(source, p)) continue;
            sum += length(minus(b, p)) - length(minus(a, p));
            count += 1;
        }
        const double step = length(minus(b, a)) / points;
        const auto found = path_difference_mm(source, a, b);
        const auto chord = chord_of(source, a, b);
        CAPTURE(i, count, step);
        REQUIRE(found.has_value() == chord.has_value());
        CHECK((found ? chord->end_mm - chord->begin_mm : 0) == Approx(count * step).margin(2.01 * step));
        if (!found || count == 0) continue;
        ++met;
        CHECK(*found == Approx(sum / count).margin(2.01 * step));
        CHECK(*path_difference_mm(source, b, a) == Approx(-*found).margin(1e-9));
    }
    CHECK(met > 80);
}
