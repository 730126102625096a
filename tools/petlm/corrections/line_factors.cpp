#include "tools/petlm/corrections/line_factors.hpp"

#include <algorithm>
#include <cmath>

namespace petacq::corrections {

LineFactors::LineFactors(const config::Scanner& scanner, double depth_mm, const LineOptions& options)
    : geometry_(scanner.geometry), object_(AttenuatingObject::of(options.attenuation)) {
    if (options.normalisation) normalisation_ = normalisation::load(*options.normalisation, geometry_);
    for (std::uint32_t crystal = 0; crystal < geometry_.crystal_count(); ++crystal) {
        places_.push_back(config::crystal_place(scanner, crystal));
        ends_.push_back(config::point_at_depth(places_.back(), depth_mm));
    }
}

double LineFactors::solid_angle(std::uint32_t crystal_a, std::uint32_t crystal_b, double scale) const {
    const config::CrystalPlace& a = places_[crystal_a];
    const config::CrystalPlace& b = places_[crystal_b];
    double squares = 0;
    double at_a = 0;
    double at_b = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        const double along = a.front_centre_mm[axis] - b.front_centre_mm[axis];
        squares += along * along;
        at_a += along * a.outward[axis];
        at_b -= along * b.outward[axis];
    }
    // Crystals side by side in one module do not see each other; the minimum prevents a division by zero.
    const double cosines = std::max(at_a * at_b / squares, 1e-6);
    return scale * cosines / squares;
}

double LineFactors::attenuation(const Vector3& from, const Vector3& to) const {
    return object_.empty() ? 1 : std::exp(-object_.integral(from, to));
}

}  // namespace petacq::corrections
