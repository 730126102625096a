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

config::LineGeometry turned(config::LineGeometry geometry, const std::vector<double>& radians) {
    geometry.turn_to(radians);
    return geometry;
}

double face_of_ring(const config::Scanner& scanner) {
    return scanner.dimensions.crystal_pitch_y_mm * scanner.dimensions.crystal_pitch_z_mm;
}

}  // namespace

void check_scatter(const std::optional<std::string>& scatter, const LineOptions& options) {
    if (scatter && *scatter != "simulation" && *scatter != "none")
        throw petlm::UsageError("--scatter: expected simulation or none, found '" + *scatter + "'");
    if (scatter == "simulation" && options.attenuation.empty())
        throw petlm::UsageError("--scatter simulation: expected --attenuation, which tells what scatters");
}

LineFactors::LineFactors(const config::Scanner& scanner, const config::DepthOfInteraction& depth,
                         const LineOptions& options, const std::vector<double>& radians)
    : geometry_(scanner.geometry),
      crystals_(scanner.geometry.crystal_count()),
      lines_(radians.empty() ? config::LineGeometry(scanner, depth)
                             : turned(config::LineGeometry(scanner, depth), radians)),
      columns_(scanner, lines_.places),
      face_squared_(scanner.arrangement ? 1 : face_of_ring(scanner) * face_of_ring(scanner)),
      object_(AttenuatingObject::of(options.attenuation)) {
    if (scanner.arrangement) response_.emplace(scanner.arrangement, depth.typical_mm() > 0);
    if (options.object_mm != 0) object_.move(options.object_mm);
    if (options.normalisation) normalisation_ = normalisation::load(*options.normalisation, geometry_);
}

double LineFactors::solid_angle(std::uint32_t a, std::uint32_t b, double scale) const {
    const config::CrystalPlace& at_a = lines_.places[a];
    const config::CrystalPlace& at_b = lines_.places[b];
    if (response_) {
        const config::LineEnds line = ends(std::min(a, b), std::max(a, b));
        const config::CrystalPlace& first = lines_.places[std::min(a, b)];
        const config::CrystalPlace& second = lines_.places[std::max(a, b)];
        return scale * response_->of(crystal(a), crystal(b)) *
               cosines_over_square(line.a, first.outward, line.b, second.outward);
    }
    return scale *
           cosines_over_square(at_a.front_centre_mm, at_a.outward, at_b.front_centre_mm, at_b.outward);
}

double LineFactors::face_share(std::uint32_t a, std::uint32_t b) const {
    const config::LineEnds line = ends(a, b);
    return solid_angle(a, b) /
           cosines_over_square(line.a, lines_.places[a].outward, line.b, lines_.places[b].outward);
}

void LineFactors::add_to(config::Sha256& digest) const {
    const std::string depth = lines_.depth.name();
    digest.add(std::as_bytes(std::span(depth)));
    digest.add_value('\0');
    digest.add_values(lines_.places);
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
