#include "tools/petsim/physics/cylinder.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace petacq::sim {

std::optional<Chord> chord(const Cylinder& cylinder, const Ray& ray) {
    constexpr double far = std::numeric_limits<double>::infinity();
    Chord out{0, far};
    const Vector3& d = ray.direction;
    const double x = ray.at[0] - cylinder.at[0];
    const double y = ray.at[1] - cylinder.at[1];
    const double z = ray.at[2] - cylinder.at[2];
    // The mantle: a t^2 + 2 b t + c <= 0.
    const double a = d[0] * d[0] + d[1] * d[1];
    const double b = x * d[0] + y * d[1];
    const double c = x * x + y * y - cylinder.radius_mm * cylinder.radius_mm;
    if (a > 0) {
        const double square = b * b - a * c;
        if (square <= 0) return std::nullopt;
        const double root = std::sqrt(square);
        out.from = std::max(out.from, (-b - root) / a);
        out.to = (-b + root) / a;
    } else if (c > 0) {
        return std::nullopt;
    }
    // The ends.
    const double half = cylinder.length_mm / 2;
    if (d[2] != 0) {
        const double t1 = (-half - z) / d[2];
        const double t2 = (half - z) / d[2];
        out.from = std::max(out.from, std::min(t1, t2));
        out.to = std::min(out.to, std::max(t1, t2));
    } else if (std::abs(z) > half) {
        return std::nullopt;
    }
    if (!(out.from < out.to)) return std::nullopt;
    return out;
}

}  // namespace petacq::sim
