// Points in the image of a scanner with crystals of common length: at their places, across and along the
// axis.
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "tests/physics/laboratory.hpp"
#include "tests/physics/scanners.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;

namespace {

struct Point {
    double x;
    double y;
    double z;
};

/// Centre of gravity within 4 mm.
Point centre_near(const ImageFile& image, const Point& at) {
    double sum = 0;
    Point centre{};
    image.each([&](float value, double x, double y, double z) {
        if (std::hypot(x - at.x, y - at.y, z - at.z) > 4) return;
        sum += value;
        centre.x += value * x;
        centre.y += value * y;
        centre.z += value * z;
    });
    return {centre.x / sum, centre.y / sum, centre.z / sum};
}

}  // namespace

TEST_CASE("points: in crystals of 8 to 15 mm they appear at their places", "[.long]") {
    const double length = GENERATE(8.0, 15.0);
    Equipment equipment{
        twelve_modules(length),
        {{"receive", {{"sockets", {{{"address", "127.0.0.1"}, {"port", 9601}}}}}},
         {"coincidence", {{"window_ticks", 100}, {"delay_ticks", 3000}, {"min_module_difference", 2}}},
         {"control", {{"socket", "petacqd.sock"}}}}};
    equipment.detector = {"--time-spread-ps", "0", "--gain-spread", "0"};
    equipment.simulation = {"--scatter", "0", "--efficiency", "1", "--seed", "71"};
    Laboratory laboratory(equipment);
    std::vector<Point> points;
    std::vector<std::string> phantom;
    constexpr std::array radii = {0.0, 6.0, 12.0, 18.0, 23.0, 28.0};
    constexpr std::array planes = {1.0, -9.0, 8.0, -4.0, 13.0, -14.0};
    for (std::size_t i = 0; i < radii.size(); ++i) {
        const double turn = 0.4 + 2.3 * static_cast<double>(i);
        const Point& p =
            points.emplace_back(Point{radii[i] * std::cos(turn), radii[i] * std::sin(turn), planes[i]});
        phantom.insert(phantom.end(), {"--point", std::to_string(p.x) + "," + std::to_string(p.y) + "," +
                                                      std::to_string(p.z) + ",0.3"});
    }
    laboratory.acquire("points", 1.5, phantom);
    const auto image =
        laboratory.image("points", {"--fov-mm", "72", "--voxel-mm", "0.9", "--iterations", "4"});
    for (const Point& p : points) {
        const Point found = centre_near(image.values, p);
        const double radius = std::hypot(p.x, p.y);
        const double radius_found = radius > 0 ? (found.x * p.x + found.y * p.y) / radius : 0;
        const double across =
            radius > 0 ? (found.y * p.x - found.x * p.y) / radius : std::hypot(found.x, found.y);
        CAPTURE(length, radius, p.z, across);
        CHECK(radius_found == Approx(radius).margin(0.1));
        CHECK(std::abs(across) < 0.1);
        CHECK(found.z == Approx(p.z).margin(0.1));
    }
}
