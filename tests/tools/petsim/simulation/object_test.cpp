// An object in which photons scatter, and cold regions of sources.
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/tools/petsim/simulation/followed.hpp"

using namespace petacq;

namespace {

/// The share of pairs with both photons detected that scattered.
double scatter_fraction(const test::Recorded& run) {
    double pairs = 0;
    double scattered = 0;
    for (const auto& [id, hits] : test::by_annihilation(run)) {
        if (hits.size() < 2) continue;
        pairs += 1;
        scattered += ((hits[0].flags | hits[1].flags) & sim::truth_scattered) != 0 ? 1 : 0;
    }
    return scattered / pairs;
}

}  // namespace

TEST_CASE("a line through the middle of a cylinder is attenuated by exp(-mu d)", "[petsim][photons]") {
    const auto scanner = test::small_scanner();
    auto options = test::ideal(1, 1);
    const double radius = GENERATE(5.0, 20.0, 30.0);
    options.object = test::water(radius);
    const sim::Tracker tracker(scanner, options);
    sim::Random random(21, sim::Purpose::check, 0);
    std::vector<sim::Deposit> deposits;
    constexpr int n = 40'000;
    int straight = 0;
    for (int i = 0; i < n; ++i) {
        const sim::Azimuth a = sim::azimuth(random);
        sim::Photon one{{{0, 0, 0}, {a.c, a.s, 0}}, 511};
        sim::Photon other{{{0, 0, 0}, {-a.c, -a.s, 0}}, 511};
        deposits.clear();
        tracker.follow(one, {}, random, deposits);
        tracker.follow(other, {}, random, deposits);
        straight += one.object_scatters + other.object_scatters == 0 ? 1 : 0;
        REQUIRE((one.object_scatters == 0) == (one.energy == 511));
    }
    const double share = std::exp(-0.0096 * 2 * radius);
    CHECK(straight == Approx(n * share).margin(3 * std::sqrt(n * share * (1 - share))));
}

TEST_CASE("pairs that did not scatter in the object are those without it, attenuated", "[petsim][photons]") {
    const auto scanner = test::small_scanner();
    const auto calibration = test::small_calibration();
    auto options = test::ideal(4, 0.05);
    const auto without = test::record(scanner, calibration, options);
    constexpr double radius = 25;
    options.object = test::water(radius);
    options.seed = 12;
    const auto with = test::record(scanner, calibration, options);
    double expected = 0;
    double pairs = 0;
    for (const auto& [id, hits] : test::by_annihilation(without)) {
        if (hits.size() < 2) continue;
        REQUIRE(hits[0].photon == 0);
        const auto a = config::crystal_place(scanner, hits[0].crystal).front_centre_mm;
        const auto b = config::crystal_place(scanner, hits[1].crystal).front_centre_mm;
        const double steep =
            std::hypot(a[0] - b[0], a[1] - b[1]) / std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
        expected += std::exp(-0.0096 * 2 * radius / steep);
        pairs += 1;
    }
    double straight = 0;
    int scattered = 0;
    for (const auto& [id, hits] : test::by_annihilation(with)) {
        for (const auto& t : hits) {
            REQUIRE((t.object_scatters > 0) == ((t.flags & sim::truth_scattered) != 0));
            REQUIRE((t.photon == sim::truth_first_photon || t.photon == sim::truth_second_photon));
            if (t.object_scatters == 0) REQUIRE(static_cast<double>(t.energy) > 510.6);
            if (t.object_scatters == 1) REQUIRE(static_cast<double>(t.energy) > 511.0 / 3 - 0.5);
            scattered += t.object_scatters > 0 ? 1 : 0;
        }
        if (hits.size() < 2) continue;
        REQUIRE(hits[0].photon != hits[1].photon);
        straight += hits[0].object_scatters + hits[1].object_scatters == 0 ? 1 : 0;
    }
    CHECK(scattered > 1000);
    CHECK(straight == Approx(expected).margin(3 * std::sqrt(expected + expected * expected / pairs)));
    CHECK(with.statistics.events.scattered > 0);
}

TEST_CASE("the scatter fraction rises with the diameter of the object", "[petsim][photons]") {
    double last = 0;
    for (const double radius : {3.0, 8.0, 16.0, 28.0}) {
        auto options = test::ideal(4, 0.02);
        options.object = test::water(radius, 60);
        const double found = scatter_fraction(test::record(options));
        CHECK(found > last + 0.02);
        last = found;
    }
    CHECK(last < 0.6);
    auto options = test::ideal(4, 0.02);
    options.physics.scatter = 0.7;  // without effect
    options.object = {{{0, 0, 0}, 28, 60}, 0};
    CHECK(scatter_fraction(test::record(options)) == 0);
}

TEST_CASE("the object moves with the bed", "[petsim][photons]") {
    auto options = test::ideal(4, 0.02);
    options.activity[0].at = {0, 0, -100};
    options.object = {{{0, 0, -100}, 25, 40}, sim::water_per_cm};
    options.bed = {100, 0.01};
    const auto run = test::record(options);
    CHECK(run.statistics.events.pairs_detected > 1000);
    CHECK(scatter_fraction(run) > 0.2);
}

TEST_CASE("cold regions are without activity, and the activity of the source stays", "[petsim][photons]") {
    const auto scanner = test::small_scanner();
    auto options = test::ideal(20, 0.02);
    options.activity[0].shape = sim::Shape::cylinder;
    options.activity[0].radius_mm = 12;
    options.activity[0].length_mm = 8;
    sim::Random random(25, sim::Purpose::check, 0);
    const auto share_inside = [&](const sim::ActivitySource& a) {
        int inside = 0;
        for (int i = 0; i < 20'000; ++i)
            inside += sim::in_cold_region(a, sim::point_in_cylinder(a, random)) ? 1 : 0;
        return inside / 20'000.0;
    };
    auto& source = options.activity[0];
    source.at = {3, 1, 0};
    source.cold = {{{7, 1, 0}, 6, 100}, {{-3, 1, 2}, 3, 4}};
    CHECK(share_inside(source) == Approx((36 * 8 + 9 * 4) / (144.0 * 8)).margin(0.02));
    // The middle of the two crystals lies near the annihilation along x for pairs along y.
    const auto near_middle = [&](const std::vector<sim::Cylinder>& cold) {
        options.activity[0].cold = cold;
        const auto run = test::record(scanner, test::small_calibration(), options);
        CHECK(run.statistics.decays == Approx(20e6 * 0.02));
        int in = 0;
        int out = 0;
        for (const auto& [id, hits] : test::by_annihilation(run)) {
            if (hits.size() < 2) continue;
            const auto a = config::crystal_place(scanner, hits[0].crystal).front_centre_mm;
            const auto b = config::crystal_place(scanner, hits[1].crystal).front_centre_mm;
            if (std::abs(a[0] - b[0]) > 2) continue;
            const double x = (a[0] + b[0]) / 2 - 3;
            ++(std::abs(x) < 3 ? in : out);
        }
        return static_cast<double>(in) / out;
    };
    const double warm = near_middle({});
    const double half = near_middle({{{3, 1, 0}, 6, 100}});
    CHECK(warm > 0.4);
    CHECK(half < 0.65 * warm);  // the chord through the cold region at its middle is half the source's
    options.activity[0].cold = {{{3, 1, 0}, 12.1, 100}};
    CHECK_THROWS_WITH(sim::check(options, scanner), test::contains("cold"));
    options.activity[0].cold = {{{3, 1, 0}, 11, 100}};
    CHECK_NOTHROW(sim::check(options, scanner));
}

TEST_CASE("cold regions and objects are read from a source description", "[petsim][photons]") {
    const auto read = [](const char* cold, const char* object) {
        return sim::sources_from_json(nlohmann::json::parse(
            std::string(
                R"({"sources": [{"type": "cylinder", "centre_mm": [0, 0, 0], "radius_mm": 9, "length_mm": 9,
                                         "activity_MBq": 1, "cold": )") +
            cold + "}], \"object\": " + object + "}"));
    };
    const auto good =
        read(R"([{"centre_mm": [1, 2, 3], "radius_mm": 4, "length_mm": 5}])",
             R"({"centre_mm": [0, 0, 0], "radius_mm": 9, "length_mm": 8, "attenuation_per_cm": 0.1})");
    REQUIRE(good.sources[0].cold.size() == 1);
    CHECK(good.sources[0].cold[0].at == sim::Vector3{1, 2, 3});
    CHECK(good.sources[0].cold[0].radius_mm == 4);
    CHECK(good.sources[0].cold[0].length_mm == 5);
    REQUIRE(good.object);
    CHECK(good.object->shape.length_mm == 8);
    CHECK(good.object->attenuation_per_cm == 0.1);
    const char* const object = R"({"centre_mm": [0, 0, 0], "radius_mm": 9, "length_mm": 8})";
    CHECK(read("[]", object).object->attenuation_per_cm == sim::water_per_cm);
    CHECK_THROWS_WITH(read("3", object), test::contains("/sources/0/cold: expected a list"));
    CHECK_THROWS_WITH(read("[3]", object), test::contains("/sources/0/cold/0: expected an object"));
    CHECK_THROWS_WITH(read(R"([{"radius_mm": 4}])", object), test::contains("/sources/0/cold/0/centre_mm"));
    CHECK_THROWS_WITH(read(R"([{"hot": 4}])", object), test::contains("unknown key"));
    CHECK_THROWS_WITH(read("[]", "3"), test::contains("/object: expected an object"));
    CHECK_THROWS_WITH(read("[]", R"({"centre_mm": [0, 0, 0]})"), test::contains("/object/radius_mm"));
}

TEST_CASE("objects and crystals out of range are refused", "[petsim][photons]") {
    const auto scanner = test::small_scanner();
    const auto refused = [&](auto change, const char* what) {
        auto options = test::ideal(1, 1, sim::CrystalModel::depth);
        change(options);
        CHECK_THROWS_WITH(sim::check(options, scanner), test::contains(what));
    };
    refused([](sim::Options& o) { o.object = test::water(32); }, "--object");
    refused([](sim::Options& o) { o.object = test::water(-1); }, "--object");
    refused([](sim::Options& o) { o.object = {{{0, 0, 0}, 5, 5}, -0.1}; }, "--object");
    refused([](sim::Options& o) { o.crystals.attenuation_per_cm = 0; }, "--crystal-attenuation-per-cm");
    refused([](sim::Options& o) { o.crystals.photo_share = 1.5; }, "--photo-share");
    refused(
        [](sim::Options& o) {
            o.crystals = {sim::CrystalModel::surface, 0.83, 0.32, true};
        },
        "--crystals");
    refused([](sim::Options& o) { o.activity[0].cold = {{{0, 0, 0}, 1, 1}}; }, "cold");
}
