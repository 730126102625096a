#include "tools/petcal/estimate/pairs/known_source.hpp"

#include <algorithm>
#include <cmath>

namespace petacq::estimate {

namespace {

Vector3 minus(const Vector3& a, const Vector3& b) {
    return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}

double dot(const Vector3& a, const Vector3& b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/// Cuts the chord down to where a t^2 + 2 b t + c <= 0; a >= 0. Whether anything is left.
bool cut_quadratic(Chord& chord, double a, double b, double c) {
    if (a < 1e-12) return c <= 0;  // along the axis
    const double square = b * b - a * c;
    if (square < 0) return false;
    const double root = std::sqrt(square);
    chord.begin_mm = std::max(chord.begin_mm, (-b - root) / a);
    chord.end_mm = std::min(chord.end_mm, (-b + root) / a);
    return chord.begin_mm < chord.end_mm;
}

/// Cuts it down to where low <= at + t slope <= high.
bool cut_slab(Chord& chord, double at, double slope, double low, double high) {
    if (std::abs(slope) < 1e-12) return at >= low && at <= high;
    const double t0 = (low - at) / slope;
    const double t1 = (high - at) / slope;
    chord.begin_mm = std::max(chord.begin_mm, std::min(t0, t1));
    chord.end_mm = std::min(chord.end_mm, std::max(t0, t1));
    return chord.begin_mm < chord.end_mm;
}

}  // namespace

std::optional<Chord> chord_of(const KnownSource& source, const Vector3& start, const Vector3& end) {
    Vector3 direction = minus(end, start);
    const double distance = std::sqrt(dot(direction, direction));
    for (double& v : direction)
        v /= distance;
    Vector3 axis = minus(source.to, source.from);
    const double length = std::sqrt(dot(axis, axis));
    if (length > 0) {
        for (double& v : axis)
            v /= length;
    }
    // The square of the distance from the axis, or from the centre of the sphere, as a function of t.
    const Vector3 offset = minus(start, source.from);
    const double along = dot(direction, axis);
    const double at = dot(offset, axis);
    Chord chord{0, distance};
    if (!cut_quadratic(chord, 1 - along * along, dot(offset, direction) - at * along,
                       dot(offset, offset) - at * at - source.radius_mm * source.radius_mm))
        return std::nullopt;
    if (length > 0 && !cut_slab(chord, at, along, 0, length)) return std::nullopt;
    return chord;
}

std::optional<double> path_difference_mm(const KnownSource& source, const Vector3& a, const Vector3& b) {
    const auto chord = chord_of(source, a, b);
    if (!chord) return std::nullopt;
    const Vector3 line = minus(b, a);
    return std::sqrt(dot(line, line)) - (chord->begin_mm + chord->end_mm);
}

}  // namespace petacq::estimate
