// Derived crystal maps against the true detector.
#include "tools/petcal/estimate/crystal_map.hpp"

#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "config/scanner.hpp"
#include "tests/config/helpers.hpp"
#include "tests/support/catch.hpp"
#include "tests/tools/petcal/true_spectra.hpp"
#include "tools/petsim/detector/make_detector.hpp"

namespace petacq::test {

namespace {

using petcal::derive_unit_map;
using petcal::FloodShape;

const config::Scanner& mouse() {
    static const config::Scanner scanner = config::load_scanner(example("mouse.scanner.json"));
    return scanner;
}

/// A detector, and the calibration that fits it best.
struct Truth {
    sim::Detector detector;
    config::Calibration best;
    explicit Truth(const sim::DetectorModel& model)
        : detector(sim::make_detector(mouse(), model)), best(sim::calibration_of(mouse(), detector)) {}
};

sim::DetectorModel model_of(double sigma, double jitter = 0.03) {
    sim::DetectorModel model;
    model.seed = 3;
    model.spot_sigma = sigma;
    model.spot_jitter = jitter;
    model.efficiency_spread = 0.1;
    return model;
}

/// By how much the derived map of a unit gives fewer frames to their crystal than the best one.
double loss(const Truth& truth, std::size_t unit, double counts, const petcal::UnitMap& map) {
    const auto frames = flood_frames(mouse().geometry, truth.detector, unit, counts);
    const std::size_t positions =
        std::size_t{mouse().geometry.position_size} * mouse().geometry.position_size;
    return share_right(frames, &truth.best.position_table[unit * positions]) -
           share_right(frames, map.table.data());
}

petcal::UnitMap map_of(const Truth& truth, std::size_t unit, double counts,
                       const std::vector<petcal::KnownSpot>& known = {}) {
    const auto& g = mouse().geometry;
    return derive_unit_map(petcal::flood_shape(mouse(), 0),
                           flood_of(g, flood_frames(g, truth.detector, unit, counts)), known);
}

/// Kills crystals of the first unit.
void kill(Truth& truth, const std::vector<std::uint32_t>& origins) {
    const auto& g = mouse().geometry;
    for (const std::uint32_t origin : origins)
        truth.detector.crystals[g.crystal(0, 0, g.local_of_origin(origin))].state = sim::CrystalState::dead;
}

double distance(const Truth& truth, std::uint32_t origin, const petcal::FloodPoint& spot) {
    const sim::TrueCrystal& c = true_crystal(mouse().geometry, truth.detector, 0, origin);
    return std::hypot(spot.x - c.spot_x, spot.y - c.spot_y);
}

constexpr double pitch = 16;  // positions, about

}  // namespace

TEST_CASE("a derived crystal map is within one percent of that of the true spots") {
    for (const double sigma : {0.2, 0.25, 0.3}) {
        const Truth truth(model_of(sigma));
        for (const std::size_t unit : {0U, 77U}) {
            CAPTURE(sigma, unit);
            const auto map = map_of(truth, unit, 1000);
            CHECK(map.refused == "");
            CHECK(map.quality.peaks >= 222);
            CHECK(map.quality.separation_x == Approx(1 / (2.3548 * sigma)).epsilon(0.05));
            CHECK(loss(truth, unit, 1000, map) < 0.005);
        }
    }
}

TEST_CASE("how good crystal maps are: the table in calibrate.md", "[.figures]") {
    for (const double sigma : {0.2, 0.25, 0.3, 0.35}) {
        const Truth truth(model_of(sigma));
        const auto& g = mouse().geometry;
        const std::size_t positions = std::size_t{g.position_size} * g.position_size;
        double derived = 0;
        double best = 0;
        constexpr std::size_t units = 24;
        for (std::size_t unit = 0; unit < units; ++unit) {
            const auto frames = flood_frames(g, truth.detector, unit, 2000);
            const auto map = derive_unit_map(petcal::flood_shape(mouse(), 0), flood_of(g, frames));
            CHECK(map.refused == "");
            derived += share_right(frames, map.table.data()) / units;
            best += share_right(frames, &truth.best.position_table[unit * positions]) / units;
        }
        std::printf("| %.2f | %.2f %% | %.2f %% |\n", sigma, 100 * derived, 100 * best);
    }
}

TEST_CASE("a crystal map follows spots that lie far off a smooth grid") {
    const Truth truth(model_of(0.3, 0.1));
    const auto map = map_of(truth, 3, 2000);
    CHECK(map.refused == "");
    CHECK(loss(truth, 3, 2000, map) < 0.01);
}

TEST_CASE("a crystal map follows strong pincushion, rotation and shear") {
    Truth truth(model_of(0.25));
    const double half = mouse().geometry.position_size / 2.0;
    for (sim::TrueCrystal& c : truth.detector.crystals) {
        const double x = (c.spot_x - half) / half;
        const double y = (c.spot_y - half) / half;
        const double squeezed = 1 - 0.12 * (x * x + y * y);
        c.spot_x = static_cast<float>(half + half * (squeezed * (x - 0.05 * y) + 0.05 * y * y));
        c.spot_y = static_cast<float>(half + half * squeezed * (y + 0.05 * x));
        c.spot_sigma_x *= static_cast<float>(1 - 0.24 * (x * x + y * y));
        c.spot_sigma_y *= static_cast<float>(1 - 0.24 * (x * x + y * y));
    }
    truth.best = sim::calibration_of(mouse(), truth.detector);
    const auto map = map_of(truth, 5, 1000);
    CHECK(map.refused == "");
    CHECK(loss(truth, 5, 1000, map) < 0.005);
}

TEST_CASE("dead crystals get the place that their neighbours predict") {
    Truth truth(model_of(0.25));
    const std::vector<std::uint32_t> dead{0, 16, 112, 113, 127, 128, 14, 29, 200};
    kill(truth, dead);
    const auto map = map_of(truth, 0, 1000);
    REQUIRE(map.refused == "");
    CHECK(map.quality.peaks == 225 - dead.size());
    CHECK(loss(truth, 0, 1000, map) < 0.005);
    for (const std::uint32_t origin : dead) {
        CAPTURE(origin);
        CHECK(map.found[origin] == 0);
        CHECK(distance(truth, origin, map.spots[origin]) < 0.25 * pitch);
    }
}

TEST_CASE("a noisy crystal and a flat background do not disturb the others") {
    Truth truth(model_of(0.25));
    const auto& g = mouse().geometry;
    const std::uint32_t noisy = 33;
    truth.detector.crystals[g.crystal(0, 0, g.local_of_origin(noisy))].efficiency = 50;
    auto flood = flood_of(g, flood_frames(g, truth.detector, 0, 1000));
    for (std::uint32_t& counts : flood)
        counts += 1;
    const auto map = derive_unit_map(petcal::flood_shape(mouse(), 0), flood);
    CHECK(map.refused == "");
    truth.detector.crystals[g.crystal(0, 0, g.local_of_origin(noisy))].efficiency = 1;
    CHECK(loss(truth, 0, 1000, map) < 0.005);
}

TEST_CASE("a place that a person gave overrules the peak") {
    const Truth truth(model_of(0.25));
    const sim::TrueCrystal& c = true_crystal(mouse().geometry, truth.detector, 0, 112);
    const auto map = map_of(truth, 0, 1000, {{112, {c.spot_x + 3.0, c.spot_y - 2.0}}});
    CHECK(map.refused == "");
    CHECK(map.spots[112].x == c.spot_x + 3.0);
    CHECK(map.spots[112].y == c.spot_y - 2.0);
    CHECK(distance(truth, 113, map.spots[113]) < 1.5);
}

TEST_CASE("without peaks in an outer row the map is refused, until a person gives a place there") {
    Truth truth(model_of(0.25));
    std::vector<std::uint32_t> column;
    for (std::uint32_t row = 0; row < 15; ++row)
        column.push_back(row * 15);
    kill(truth, column);
    const auto map = map_of(truth, 0, 1000);
    CHECK(lacking(map.refused, {"expected peaks in every outer row and column", "column"}) == "");

    const sim::TrueCrystal& c = true_crystal(mouse().geometry, truth.detector, 0, 105);
    const auto helped = map_of(truth, 0, 1000, {{105, {c.spot_x, c.spot_y}}});
    CHECK(helped.refused == "");
    CHECK(loss(truth, 0, 1000, helped) < 0.005);
}

TEST_CASE("positions more than half a pitch beyond the edge of the crystals are outside") {
    const FloodShape shape{64, 3, 3};
    const petcal::FloodPoints spots{{20, 20}, {30, 20}, {40, 20}, {20, 30}, {30, 30},
                                    {40, 30}, {20, 40}, {30, 40}, {40, 40}};
    const auto table = petcal::nearest_spots(shape, spots, petcal::FloodPoints(9, {10, 10}));
    CHECK(table[30 + 30 * 64] == 4);
    CHECK(table[24 + 20 * 64] == 0);
    CHECK(table[26 + 20 * 64] == 1);
    CHECK(table[10 + 30 * 64] == 3);
    CHECK(table[9 + 30 * 64] == petcal::outside_crystals);
    CHECK(table[50 + 50 * 64] == 8);
    CHECK(table[51 + 50 * 64] == petcal::outside_crystals);
}

TEST_CASE("with 256 crystals no position is outside") {
    const FloodShape shape{64, 16, 16};
    petcal::FloodPoints spots;
    for (int row = 0; row < 16; ++row)
        for (int column = 0; column < 16; ++column)
            spots.push_back({10.0 + 2.5 * column, 10.0 + 2.5 * row});
    const auto table = petcal::nearest_spots(shape, spots, petcal::FloodPoints(256, {2.5, 2.5}));
    CHECK(table[0] == 0);
    CHECK(table[63 + 63 * 64] == 255);
}

TEST_CASE("flood maps without enough in them are refused with what was expected") {
    const FloodShape shape = petcal::flood_shape(mouse(), 0);
    std::vector<std::uint32_t> flood(shape.positions());
    CHECK(derive_unit_map(shape, flood).refused == "expected at least 200 counts per crystal, found 0.0");

    const Truth truth(model_of(0.25));
    CHECK(lacking(map_of(truth, 0, 100).refused, {"at least 200 counts per crystal", "found 99.9"}) == "");

    // One position, and all positions, with as many counts as there can be.
    flood[70 + 80 * shape.size] = 4294967295U;
    CHECK(derive_unit_map(shape, flood).refused != "");
    flood.assign(flood.size(), 4294967295U);
    CHECK(derive_unit_map(shape, flood).refused != "");

    std::mt19937_64 random(1);
    for (std::uint32_t& counts : flood)
        counts = static_cast<std::uint32_t>(random() % 20);
    CHECK(derive_unit_map(shape, flood).refused != "");
}

TEST_CASE("units with a single row, a single column or a single crystal have a map") {
    std::mt19937_64 random(1);
    std::normal_distribution<> normal;
    for (const FloodShape& shape : {FloodShape{64, 6, 1}, FloodShape{64, 1, 5}, FloodShape{64, 1, 1}}) {
        CAPTURE(shape.columns, shape.rows);
        std::vector<std::uint32_t> flood(shape.positions());
        for (std::uint32_t origin = 0; origin < shape.crystals(); ++origin) {
            const std::uint32_t row = origin / shape.columns;
            for (int i = 0; i < 1000; ++i) {
                const double x = 12 + 8.0 * (origin % shape.columns) + 1.8 * normal(random);
                const double y = 14 + 8.0 * row + 1.8 * normal(random);
                ++flood[static_cast<std::size_t>(std::lround(x) + 64 * std::lround(y))];
            }
        }
        const auto map = derive_unit_map(shape, flood);
        CHECK(map.refused == "");
        for (std::uint32_t origin = 0; origin < shape.crystals(); ++origin)
            CHECK(map.table[12 + 8 * (origin % shape.columns) + 64 * (14 + 8 * (origin / shape.columns))] ==
                  origin);
    }
}

}  // namespace petacq::test
