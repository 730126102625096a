// The example scanners of the long form, from simulated UDP to an image in kBq/ml: calibrated by the commands
// of the how-to page, with a true detector of which the first calibration tells nothing. Each prints a row:
// scanner, crystals, mean of a cylinder / truth, and how far two points are from their places.
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "tests/end_to_end/arrangements/chain.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;
using nlohmann::json;

namespace {

using Point = std::array<double, 3>;

/// An even cylinder that is scanned for some seconds.
struct Scan {
    EvenCylinder cylinder;
    double seconds;
};

struct Example {
    const char* name;
    Scan even;   ///< for all steps of the calibration but the last
    Scan known;  ///< in water, for the activity factor
    Scan body;   ///< in water, whose image is measured
    ImageSize image;
    double seen_mm;  ///< of the axis, about the middle: where images are measured
    std::vector<Point> points;
    double max_error = 0.03;                    ///< of the mean
    Chain::Medium filled = Chain::Medium::air;  ///< the cylinder `even`
    bool one_ring = false;                      ///< of the modules along the axis
    std::optional<ImageSize> fine{};  ///< of the points, whose counts lie in few voxels; else as image
};

json scanner_of(const Example& e) {
    json scanner = example_scanner(e.name);
    if (e.one_ring) {
        scanner["modules"][0]["along_z"]["count"] = 1;
        scanner.erase("sources");
    }
    return scanner;
}

std::vector<std::string> in_air(const EvenCylinder& c, const char* seed) {
    return {"--seed", seed, "--scatter", "0", "--cylinder", c.text() + "," + std::to_string(c.mbq)};
}

std::vector<std::string> in_water(const EvenCylinder& c, const char* seed) {
    return {"--seed", seed, "--object", c.text(), "--cylinder", c.text() + "," + std::to_string(c.mbq)};
}

void calibrate(Chain& chain, const Example& e) {
    const EvenCylinder& even = e.even.cylinder;
    chain.simulate("even", e.even.seconds,
                   e.filled == Chain::Medium::air ? in_air(even, "3") : in_water(even, "3"));
    if (std::string(e.name) == "monolithic") {
        chain.import_true_map();
    } else {
        chain.replay("even", "flood");
        chain.derive_crystals("flood");
    }
    chain.replay("even", "mapped");
    chain.derive_energy("mapped");
    chain.replay("even", "untimed");
    chain.derive_time("untimed", e.even.cylinder);
    chain.replay("even", "even");
    std::filesystem::remove(chain.path("even.pcap"));
    chain.derive_normalisation("even", e.even.cylinder, e.filled);
    chain.simulate("known", e.known.seconds, in_water(e.known.cylinder, "4"));
    chain.replay("known", "known");
    chain.image("known", e.image, "normalisation.h5", {"--attenuation", e.known.cylinder.text()});
    chain.derive_activity(e.known.cylinder, e.seen_mm + 6);  // 3 mm from its ends do not count
}

/// Found, to true concentration.
double mean_of_truth(const ImageFile& image, const EvenCylinder& c, double seen_mm) {
    const double mean = image.mean([&](double x, double y, double z) {
        return std::hypot(x - c.at[0], y - c.at[1]) < c.radius - 2.5 && std::abs(z) < seen_mm / 2 &&
               std::abs(z - c.at[2]) < c.length / 2 - 4;
    });
    return mean / c.kbq_per_ml();
}

/// How far the middle of the activity around a point is from it.
double offset_of(const ImageFile& image, const Point& point) {
    constexpr double near_mm = 6;
    std::array<double, 4> sum{};
    image.each([&](float value, double x, double y, double z) {
        if (std::hypot(x - point[0], y - point[1], z - point[2]) > near_mm) return;
        sum[0] += value * x;
        sum[1] += value * y;
        sum[2] += value * z;
        sum[3] += value;
    });
    REQUIRE(sum[3] > 0);
    return std::hypot(sum[0] / sum[3] - point[0], sum[1] / sum[3] - point[1], sum[2] / sum[3] - point[2]);
}

void check_example(const Example& e) {
    Chain chain(scanner_of(e), example_configuration(e.name));
    calibrate(chain, e);
    const json compared = chain.compare();
    INFO(compared.dump());
    CHECK(compared["energy_factor"]["rms_percent"] < 1);
    CHECK(compared["time_offset"]["rms_ps"] < 100);
    const json inspected = chain.inspect();
    CHECK(inspected["position_table"]["crystals_without_position"] == 0);
    CHECK(inspected["energy_factor"]["zero"] == 0);

    chain.simulate("body", e.body.seconds, in_water(e.body.cylinder, "5"));
    chain.send("body", "body");
    const ImageFile body =
        chain.image("body", e.image, "quantitative.h5", {"--attenuation", e.body.cylinder.text()});
    const json statement = json::parse(read_file(chain.path("image/image.json")));
    CHECK(statement.at("unit") == "kBq/ml");
    const double found = mean_of_truth(body, e.body.cylinder, e.seen_mm);
    CHECK(found == Approx(1).margin(e.max_error));

    std::cout << e.name << "  " << chain.scanner().geometry.crystal_count() << " crystals, mean / truth "
              << found << ", points off by";
    for (const Point& point : e.points) {
        const std::string at =
            std::to_string(point[0]) + "," + std::to_string(point[1]) + "," + std::to_string(point[2]) + ",1";
        const std::string name = "point" + std::to_string(&point - e.points.data());
        chain.simulate(name, 2, {"--seed", "6", "--scatter", "0", "--point", at});
        chain.send(name, name);
        const double offset =
            offset_of(chain.image(name, e.fine.value_or(e.image), "quantitative.h5", {}), point);
        CHECK(offset < 0.2);
        std::cout << ' ' << offset;
    }
    std::cout << " mm" << std::endl;
}

}  // namespace

TEST_CASE("image in kBq/ml: phoswich", "[.long][arrangements]") {
    check_example({.name = "phoswich",
                   .even = {{{0, 0, 0}, 16, 44, 3}, 30},
                   .known = {{{0, 0, 0}, 12, 40, 2}, 15},
                   .body = {{{4, -3, 2}, 9, 30, 1.5}, 15},
                   .image = {0.8, 44},
                   .seen_mm = 20,
                   .points = {{6, -4, 3}, {-8, 2, -5}}});
}

TEST_CASE("image in kBq/ml: insert", "[.long][arrangements]") {
    // The three kinds of pairs have different shares of scattered ones.
    const auto filled = GENERATE(Chain::Medium::air, Chain::Medium::water);
    check_example({.name = "insert",
                   .even = {{{0, 0, 0}, 20, 80, 4}, 30},
                   .known = {{{0, 0, 0}, 13, 60, 2}, 15},
                   .body = {{{4, -3, 2}, 10, 36, 1.5}, 15},
                   .image = {1, 50},
                   .seen_mm = 24,
                   .points = {{3, -2, 2}, {-8, 5, -6}},
                   .filled = filled});
}

TEST_CASE("image in kBq/ml: box", "[.long][arrangements]") {
    check_example({.name = "box",
                   .even = {{{0, 0, 0}, 20, 70, 4}, 30},
                   .known = {{{0, 0, 0}, 13, 60, 2}, 15},
                   .body = {{{4, -3, 2}, 11, 40, 1.5}, 15},
                   .image = {1, 50},
                   .seen_mm = 36,
                   .points = {{5, -8, 6}, {-9, 3, -7}}});
}

TEST_CASE("image in kBq/ml: hexagon", "[.long][arrangements]") {
    check_example({.name = "hexagon",
                   .even = {{{0, 0, 0}, 24, 54, 4}, 30},
                   .known = {{{0, 0, 0}, 14, 50, 2}, 15},
                   .body = {{{4, -3, 2}, 11, 30, 1.5}, 15},
                   .image = {1, 60},
                   .seen_mm = 24,
                   .points = {{4, 3, -5}, {-9, 3, 7}}});
}

TEST_CASE("image in kBq/ml: partial-ring", "[.long][arrangements]") {
    check_example({.name = "partial-ring",
                   .even = {{{0, 0, 0}, 24, 60, 4}, 30},
                   .known = {{{0, 0, 0}, 14, 60, 2}, 15},
                   .body = {{{4, -3, 2}, 11, 36, 1.5}, 15},
                   .image = {1, 60},
                   .seen_mm = 30,
                   .points = {{0, 0, 3}, {-9, 3, 7}},
                   .max_error = 0.05});
}

TEST_CASE("image in kBq/ml: unequal-blocks", "[.long][arrangements]") {
    check_example({.name = "unequal-blocks",
                   .even = {{{0, 0, 0}, 20, 54, 4}, 30},
                   .known = {{{0, 0, 0}, 13, 54, 2}, 15},
                   .body = {{{4, -3, 2}, 11, 34, 1.5}, 15},
                   .image = {1, 50},
                   .seen_mm = 28,
                   .points = {{-4, 5, 3}, {8, 2, -6}}});
}

TEST_CASE("image in kBq/ml: two-rings", "[.long][arrangements]") {
    check_example({.name = "two-rings",
                   .even = {{{0, 0, 0}, 20, 54, 4}, 30},
                   .known = {{{0, 0, 0}, 13, 50, 2}, 15},
                   .body = {{{4, -3, -4}, 11, 30, 1.5}, 15},
                   .image = {1, 50},
                   .seen_mm = 10,  // the scanner ends 8 mm from the middle
                   .points = {{5, 2, -3}, {8, -2, 3}}});
}

TEST_CASE("image in kBq/ml: two-heads", "[.long][arrangements]") {
    check_example({.name = "two-heads",
                   .even = {{{0, 0, 0}, 20, 54, 8}, 20},
                   .known = {{{0, 0, 0}, 13, 50, 4}, 20},
                   .body = {{{4, -3, 2}, 11, 30, 3}, 20},
                   .image = {1, 50},
                   .seen_mm = 20,
                   .points = {{2, -3, 4}, {8, 2, -6}}});
}

TEST_CASE("image in kBq/ml: monolithic", "[.long][arrangements]") {
    check_example({.name = "monolithic",
                   .even = {{{0, 0, 0}, 20, 80, 6}, 60},
                   .known = {{{0, 0, 0}, 13, 60, 2}, 15},
                   .body = {{{4, -3, 2}, 11, 40, 2}, 15},
                   .image = {1, 50},
                   .seen_mm = 36,
                   .points = {{4, -6, 3}, {-8, 2, -5}}});
}

TEST_CASE("image in kBq/ml: one ring of total-body", "[.long][arrangements]") {
    check_example({.name = "total-body",
                   .even = {{{0, 0, 0}, 150, 300, 10}, 60},
                   .known = {{{0, 0, 0}, 100, 300, 5}, 15},
                   .body = {{{40, -30, 10}, 80, 200, 5}, 10},
                   .image = {4, 400},
                   .seen_mm = 160,
                   .points = {{20, -30, 10}, {-60, 40, -30}},
                   .one_ring = true});
}

TEST_CASE("image in kBq/ml: total-body", "[.long][arrangements]") {
    check_example({.name = "total-body",
                   .even = {{{0, 0, 0}, 150, 2400, 12}, 29},
                   .known = {{{0, 0, 0}, 100, 1500, 4}, 10},
                   .body = {{{40, -30, 10}, 80, 1000, 4}, 10},
                   .image = {8, 400},
                   .seen_mm = 900,
                   .points = {{20, -30, 10}, {-60, 40, -630}},
                   .fine = ImageSize{4, 400}});
}
