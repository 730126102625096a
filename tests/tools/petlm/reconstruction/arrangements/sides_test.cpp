// How many pairs are found for each that the response of pairs expects, and whose photons came through the
// sides of modules.
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/tools/petlm/reconstruction/arrangements/photons.hpp"
#include "tools/petlm/reconstruction/em/lines.hpp"

namespace petacq::test {
namespace {

/// Pairs of a cylinder that are found for each that is expected, by the distance of their lines from the
/// axis: within 6 mm, and from 8 to 11 mm.
struct SharesByDistance {
    double near_axis = 0;
    double far = 0;
    /// Of these, the ones with a photon that came through a side of its module.
    double near_through_sides = 0;
    double far_through_sides = 0;
};

/// The length of a line in a cylinder around the axis.
double chord(const image::Line& line, double radius, double low, double high) {
    const Eigen::Vector3d from = Eigen::Map<const Eigen::Vector3f>(line.from.x).cast<double>();
    const Eigen::Vector3d along = Eigen::Map<const Eigen::Vector3f>(line.to.x).cast<double>() - from;
    const double square = along.head<2>().squaredNorm();
    const double product = from.head<2>().dot(along.head<2>());
    const double root = product * product - square * (from.head<2>().squaredNorm() - radius * radius);
    if (!(root > 0)) return 0;
    double begin = (-product - std::sqrt(root)) / square;
    double end = (-product + std::sqrt(root)) / square;
    if (along[2] == 0) return from[2] > low && from[2] < high ? (end - begin) * along.norm() : 0;
    const double one = (low - from[2]) / along[2];
    const double other = (high - from[2]) / along[2];
    begin = std::max(begin, std::min(one, other));
    end = std::min(end, std::max(one, other));
    return std::max(end - begin, 0.0) * along.norm();
}

/// Whether a ray from inside the scanner enters the module of a crystal through a side that is parallel to
/// the axis.
bool through_side(const config::Arrangement& arrangement, std::uint32_t crystal, const config::Vector3& from,
                  const config::Vector3& direction) {
    const config::Module& module = arrangement.modules()[arrangement.address(crystal).module];
    const Eigen::Map<const Eigen::Vector3d> u(direction.data());
    const Eigen::Vector3d at = Eigen::Map<const Eigen::Vector3d>(from.data()) -
                               Eigen::Map<const Eigen::Vector3d>(module.front_mm.data());
    const Eigen::Map<const Eigen::Vector3d> outward(module.outward.data());
    const Eigen::Map<const Eigen::Vector3d> along_y(module.along_y.data());
    double half = 0;
    for (const config::CrystalLayer& layer : arrangement.type_of(module).layers)
        half = std::max({half, -layer.y.low(), layer.y.high()});
    const double at_front = at.dot(along_y) - at.dot(outward) / u.dot(outward) * u.dot(along_y);
    return std::abs(at_front) > half;
}

SharesByDistance shares_by_distance(const config::Scanner& scanner, std::size_t decays) {
    constexpr double radius = 12;
    constexpr double length = 20;
    const config::Arrangement& arrangement = *scanner.arrangement;
    const double middle = scanner.name == "two-rings" ? -6 : 0;
    const gpu::PairRule rule = gpu::PairRule::of(scanner.geometry, {});
    const corrections::LineFactors factors(scanner, config::DepthOfInteraction::of(scanner, std::nullopt));
    const image::Grid unit{{1, 1, 1}, 1};
    const double scale = image::weight_scale(factors, unit) * static_cast<double>(decays) /
                         (std::numbers::pi * radius * radius * length);
    const auto is_far = [&](std::uint32_t a, std::uint32_t b) -> std::optional<bool> {
        const auto [from, to] = factors.ends(a, b);
        const double dx = to[0] - from[0];
        const double dy = to[1] - from[1];
        const double distance = std::abs(dx * from[1] - dy * from[0]) / std::hypot(dx, dy);
        if (distance < 6) return false;
        if (distance > 8 && distance < 11) return true;
        return std::nullopt;
    };
    SharesByDistance expected;
    for (std::uint32_t a = 0; a < arrangement.crystal_count(); ++a) {
        for (std::uint32_t b = a + 1; b < arrangement.crystal_count(); ++b) {
            if (!rule.good(a, b)) continue;
            const auto far = is_far(a, b);
            if (!far) continue;
            double sum = 0;
            image::lines_of(factors.geometry(), {a, b}, 2).each([&](const image::Line& line, float share) {
                sum += double{share} * chord(line, radius, middle - length / 2, middle + length / 2);
            });
            (*far ? expected.far : expected.near_axis) += sum * factors.solid_angle(a, b, scale);
        }
    }
    SharesByDistance out;
    Photons photons(scanner, 9);
    for (std::size_t i = 0; i < decays; ++i) {
        config::Vector3 from = photons.in_cylinder(radius, length);
        from[2] += middle;
        const config::Vector3 u = photons.direction();
        const config::Vector3 back = {-u[0], -u[1], -u[2]};
        const auto a = photons.absorbed(from, u);
        if (!a) continue;
        const auto b = photons.absorbed(from, back);
        if (!b || !rule.good(*a, *b)) continue;
        const auto far = is_far(std::min(*a, *b), std::max(*a, *b));
        if (!far) continue;
        const bool side = through_side(arrangement, *a, from, u) || through_side(arrangement, *b, from, back);
        const double one = 1 / (*far ? expected.far : expected.near_axis);
        (*far ? out.far : out.near_axis) += one;
        if (side) (*far ? out.far_through_sides : out.near_through_sides) += one;
    }
    return out;
}

}  // namespace

TEST_CASE("arrangements: far from the axis some photons come through the sides of modules",
          "[petlm][image][arrangement][.long]") {
    for (const std::string name : {"two-rings", "phoswich"}) {
        CAPTURE(name);
        const SharesByDistance shares = shares_by_distance(example_scanner(name), 1'000'000);
        CHECK(shares.near_axis == Approx(1).margin(0.04));
        // docs/explanation/image.md has these numbers.
        CHECK(shares.far / shares.near_axis > 1);
        CHECK(shares.far / shares.near_axis < 1.06);
        CHECK(shares.far_through_sides > 0.05);
        CHECK(shares.near_through_sides < 0.001);
    }
}

}  // namespace petacq::test
