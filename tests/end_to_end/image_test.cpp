// From a simulated acquisition to an image, with the real programs: the sources appear in the right places.
#include <cmath>

#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/image_file.hpp"

using namespace petacq::test;
using nlohmann::json;

namespace {

struct Point {
    double x, y, z;
};

}  // namespace

TEST_CASE("the image shows two points and a cylinder of a simulated run in the right places",
          "[e2e][image]") {
    const Site site(json{{"coincidence", {{"delay_ticks", 6400}}}});
    const std::string capture = (site.directory() / "phantom.pcap").string();
    const Outcome simulated = run_program(
        PETSIM_PROGRAM, {"--scanner", site.scanner(), "--calibration", site.calibration(), "--cylinder",
                         "-4,-6,-9,7,12,1", "--point", "14,5,11,0.12", "--point", "-9,13,6,0.12", "--rate",
                         "900000", "--duration-s", "1", "--seed", "3", "--write", capture});
    INFO(simulated.err);
    REQUIRE(simulated.status == 0);
    const Outcome replayed = run_program(
        PETACQD_PROGRAM, {"--config", site.configuration(), "--replay", capture, "--run", "phantom"});
    INFO(replayed.err);
    REQUIRE(replayed.status == 0);
    const auto out = site.directory() / "image";
    const Outcome made = run_program(PETLM_PROGRAM, {"image", site.run("phantom").string(), "--output",
                                                     out.string(), "--voxel-mm", "1.6"});
    INFO(made.out << made.err);
    REQUIRE(made.status == 0);
    const ImageFile image(out / "image.nii");

    for (const Point p : {Point{14, 5, 11}, Point{-9, 13, 6}}) {
        Point peak{};
        float largest = 0;
        image.each([&](float value, double x, double y, double z) {
            if (value <= largest || std::hypot(x - p.x, y - p.y, z - p.z) > 7) return;
            largest = value;
            peak = {x, y, z};
        });
        CAPTURE(peak.x, peak.y, peak.z);
        CHECK(std::abs(peak.x - p.x) < image.voxel);
        CHECK(std::abs(peak.y - p.y) < image.voxel);
        CHECK(std::abs(peak.z - p.z) < image.voxel);
    }

    // The cylinder is uniform and has the right length: the activity falls to half within a voxel of each
    // face.
    const auto radius = [](double x, double y) { return std::hypot(x + 4, y + 6); };
    const double full =
        image.mean([&](double x, double y, double z) { return radius(x, y) < 5 && std::abs(z + 9) < 4; });
    CHECK(full > 0);
    const auto at = [&](auto inside) { return image.mean(inside) / full; };
    CHECK(at([&](double x, double y, double z) { return radius(x, y) < 2.5 && std::abs(z + 9) < 4; }) ==
          Approx(1).margin(0.15));
    const double voxel = image.voxel;
    for (const double face : {-15.0, -3.0}) {
        const double out_of = face < -9 ? -1 : 1;
        const auto slab = [&](double from, double to) {
            return at([&](double x, double y, double z) {
                const double beyond = out_of * (z - face);
                return radius(x, y) < 5 && beyond >= from && beyond < to;
            });
        };
        CHECK(slab(-2 * voxel, -voxel) > 0.5);
        CHECK(slab(voxel, 2 * voxel) < 0.5);
        CHECK(slab(3 * voxel, 4 * voxel) < 0.1);
    }
    // In four directions, so that no side can compensate for another.
    for (const auto& [dx, dy] : {std::pair(1, 0), std::pair(-1, 0), std::pair(0, 1), std::pair(0, -1)}) {
        const auto ring = [&, dx = dx, dy = dy](double from, double to) {
            return at([&](double x, double y, double z) {
                const double r = radius(x, y);
                const bool there = (x + 4) * dx + (y + 6) * dy > 0.7 * r;
                return there && r >= from && r < to && std::abs(z + 9) < 4;
            });
        };
        CHECK(ring(7 - 2 * voxel, 7 - voxel) > 0.5);
        CHECK(ring(7 + voxel, 7 + 2 * voxel) < 0.5);
        CHECK(ring(7 + 3 * voxel, 7 + 4 * voxel) < 0.1);
    }
}
