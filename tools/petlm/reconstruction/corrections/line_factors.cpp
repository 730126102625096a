#include "tools/petlm/reconstruction/corrections/line_factors.hpp"

#include <algorithm>
#include <cmath>

#include "tools/petlm/base/status.hpp"

namespace petacq::corrections {

namespace {

double cosines_over_square(const Vector3& a, const Vector3& outward_a, const Vector3& b,
                           const Vector3& outward_b) {
    double squares = 0;
    double at_a = 0;
    double at_b = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        const double along = a[axis] - b[axis];
        squares += along * along;
        at_a += along * outward_a[axis];
        at_b -= along * outward_b[axis];
    }
    // Crystals side by side in one module do not see each other; the minimum prevents a division by zero.
    const double cosines = std::max(at_a * at_b / squares, 1e-6);
    return cosines / squares;
}

}  // namespace

void check_scatter(const std::optional<std::string>& scatter, const LineOptions& options) {
    if (scatter && *scatter != "simulation" && *scatter != "none")
        throw petlm::UsageError("--scatter: expected simulation or none, found '" + *scatter + "'");
    if (scatter == "simulation" && options.attenuation.empty())
        throw petlm::UsageError("--scatter simulation: expected --attenuation, which tells what scatters");
}

LineFactors::LineFactors(const config::Scanner& scanner, double depth_mm, const LineOptions& options)
    : geometry_(scanner.geometry), depth_mm_(depth_mm), object_(AttenuatingObject::of(options.attenuation)) {
    if (options.object_mm != 0) object_.move(options.object_mm);
    if (options.normalisation) normalisation_ = normalisation::load(*options.normalisation, geometry_);
    for (std::uint32_t crystal = 0; crystal < geometry_.crystal_count(); ++crystal) {
        places_.push_back(config::crystal_place(scanner, crystal));
        ends_.push_back(config::point_at_depth(places_.back(), depth_mm));
    }
}

double LineFactors::solid_angle(std::uint32_t a, std::uint32_t b, double scale) const {
    return scale * cosines_over_square(places_[a].front_centre_mm, places_[a].outward,
                                       places_[b].front_centre_mm, places_[b].outward);
}

double LineFactors::face_share(std::uint32_t a, std::uint32_t b) const {
    return solid_angle(a, b) /
           cosines_over_square(ends_[a], places_[a].outward, ends_[b], places_[b].outward);
}

void LineFactors::add_to(config::Sha256& digest) const {
    digest.add_value(depth_mm_);
    digest.add_values(places_);
    digest.add_values(ends_);
    digest.add_value(normalised());
    if (normalisation_) {
        digest.add_values(normalisation_->efficiency);
        digest.add_values(normalisation_->transaxial);
        digest.add_values(normalisation_->axial);
    }
    object_.add_to(digest);
}

double LineFactors::attenuation(const Vector3& from, const Vector3& to) const {
    return object_.empty() ? 1 : std::exp(-object_.integral(from, to));
}

}  // namespace petacq::corrections
