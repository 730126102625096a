#include "tools/petsim/physics/crystal_ring.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace petacq::sim {

namespace {

/// Distances to a cylinder around z solve a t^2 + 2 b t + c = 0.
struct Quadratic {
    double a;
    double b;
    double c;
};

Quadratic to_radius(const Ray& ray, double radius) {
    const Vector3& p = ray.at;
    const Vector3& d = ray.direction;
    return {d[0] * d[0] + d[1] * d[1], p[0] * d[0] + p[1] * d[1],
            p[0] * p[0] + p[1] * p[1] - radius * radius};
}

}  // namespace

CrystalRing::CrystalRing(const config::Scanner& scanner)
    : finder_(scanner), inner_(finder_.radius_mm()), outer_(finder_.outer_radius_mm()) {}

double CrystalRing::leave_bore(Ray& ray) const {
    const Quadratic q = to_radius(ray, inner_);
    if (q.c >= 0 && q.b >= 0) return 0;  // already there, on its way out
    if (q.a <= 0) return -1;
    const double distance = (std::sqrt(std::max(0.0, q.b * q.b - q.a * q.c)) - q.b) / q.a;
    ray.advance(distance);
    return distance;
}

CrystalStep CrystalRing::advance(Ray& ray, double attenuation_per_mm, Random& random) const {
    double path = 0;
    for (;;) {
        double to_bore = std::numeric_limits<double>::infinity();
        const Quadratic q = to_radius(ray, inner_);
        const double square = q.b * q.b - q.a * q.c;
        if (q.b < 0 && square > 0) to_bore = (-q.b - std::sqrt(square)) / q.a;
        const double step = random.exponential() / attenuation_per_mm;
        if (step >= to_bore) {
            ray.advance(to_bore);
            return {Reached::bore, 0, path + to_bore};
        }
        ray.advance(step);
        path += step;
        const Vector3& p = ray.at;
        const Vector3& d = ray.direction;
        const bool beside =
            (p[2] > finder_.axial_high_mm() && d[2] >= 0) || (p[2] < finder_.axial_low_mm() && d[2] <= 0);
        const bool beyond = p[0] * p[0] + p[1] * p[1] > outer_ * outer_ && p[0] * d[0] + p[1] * d[1] > 0;
        if (beside || beyond) return {Reached::outside, 0, path};
        if (const auto crystal = finder_.crystal_at(p)) return {Reached::crystal, *crystal, path};
    }
}

}  // namespace petacq::sim
