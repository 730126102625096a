// A photon's line of flight.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "config/scanner/scanner.hpp"
#include "tools/petsim/random/random.hpp"

namespace petacq::sim {

using config::Vector3;

struct Ray {
    Vector3 at{};         ///< mm
    Vector3 direction{};  ///< unit vector

    void advance(double mm) {
        for (std::size_t i = 0; i < 3; ++i)
            at[i] += mm * direction[i];
    }
};

/// Cosine and sine of an angle.
struct Azimuth {
    double c;
    double s;
};

/// An even angle, without trigonometric functions.
inline Azimuth azimuth(Random& random) {
    for (;;) {
        const double x = random.symmetric();
        const double y = random.symmetric();
        const double square = x * x + y * y;
        if (square > 1 || square < 1e-12) continue;
        const double scale = 1 / std::sqrt(square);
        return {x * scale, y * scale};
    }
}

/// A unit vector, evenly over the sphere.
inline Vector3 isotropic(Random& random) {
    const double cosine = random.symmetric();
    const double sine = std::sqrt(1 - cosine * cosine);
    const Azimuth a = azimuth(random);
    return {sine * a.c, sine * a.s, cosine};
}

/// `direction`, turned by an angle of that cosine towards the side that `around` says.
inline Vector3 turned(const Vector3& direction, double cosine, const Azimuth& around) {
    // Two unit vectors across the direction; the first one from the axis that is furthest from it.
    const double across = std::hypot(direction[0], direction[1]);
    const bool steep = across < 0.1;
    const double scale = 1 / (steep ? std::hypot(direction[1], direction[2]) : across);
    const Vector3 e1 = steep ? Vector3{0, -direction[2] * scale, direction[1] * scale}
                             : Vector3{-direction[1] * scale, direction[0] * scale, 0};
    const Vector3 e2{direction[1] * e1[2] - direction[2] * e1[1], direction[2] * e1[0] - direction[0] * e1[2],
                     direction[0] * e1[1] - direction[1] * e1[0]};
    const double sine = std::sqrt(std::max(0.0, 1 - cosine * cosine));
    Vector3 out{};
    double square = 0;
    for (std::size_t i = 0; i < 3; ++i) {
        out[i] = cosine * direction[i] + sine * (around.c * e1[i] + around.s * e2[i]);
        square += out[i] * out[i];
    }
    const double unit = 1 / std::sqrt(square);
    for (double& v : out)
        v *= unit;
    return out;
}

}  // namespace petacq::sim
