// Curves of the activity: where they come from, and which are refused.
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/petsim/common.hpp"

using namespace petacq;
using namespace petacq::test;

TEST_CASE("activity curves that make no sense are refused", "[petsim]") {
    auto options = point_options(4, 0.1);
    const auto scanner = small_scanner();
    for (const sim::ActivityCurve& curve :
         {sim::ActivityCurve{{0, 1}, {0, 2}}, sim::ActivityCurve{{0, -1}}, sim::ActivityCurve{{0, 0}, {1, 0}},
          sim::ActivityCurve{{std::nan(""), 1}}}) {
        options.activity[0].curve = curve;
        CHECK_THROWS_AS(sim::check(options, scanner), std::invalid_argument);
    }
    options.activity[0].curve = {{0, 0}, {1, 3}};
    CHECK_NOTHROW(sim::check(options, scanner));
}

TEST_CASE("a source description may have an activity curve for each source", "[petsim]") {
    const auto read = [](const std::string& curve) {
        return sim::sources_from_json(nlohmann::json::parse(
            R"({"sources": [{"type": "point", "position_mm": [0, 0, 0], "activity_MBq": 1, "activity_curve": )" +
            curve + "}]}"));
    };
    sim::Options options;
    options.activity = read("[[0, 0], [2.5, 1.25]]").sources;
    REQUIRE(options.activity.at(0).curve.size() == 2);
    CHECK(options.activity[0].curve[1].time_s == 2.5);
    CHECK(options.activity[0].curve[1].share == 1.25);
    CHECK_THAT(sim::to_json(options).dump(), contains(R"("activity_curve":[[0.0,0.0],[2.5,1.25]])"));
    for (const char* wrong : {"7", "[]", "[[0]]", R"([["a", 1]])", "[[0, 1, 2]]"})
        CHECK_THROWS_AS(read(wrong), std::invalid_argument);
}

TEST_CASE("an activity curve is read from CSV, with or without a header", "[petsim]") {
    const TemporaryDirectory dir;
    const auto file = dir / "curve.csv";
    for (const char* text : {"0,0\n1.5,2\n", "time_s,activity\n0, 0\r\n\n1.5 ,2\r\n"}) {
        write_file(file, text);
        const sim::ActivityCurve curve = sim::curve_from_csv(file.string());
        REQUIRE(curve.size() == 2);
        CHECK(curve[1].time_s == 1.5);
        CHECK(curve[1].share == 2);
    }
    for (const auto& [text, expected] : {std::pair{"time_s,activity\n0,0\n1;2\n", "line 3"},
                                         std::pair{"time_s,activity\n", "expected lines"}}) {
        write_file(file, text);
        try {
            sim::curve_from_csv(file.string());
            FAIL("it was read");
        } catch (const std::invalid_argument& error) {
            CHECK_THAT(error.what(), contains(expected));
        }
    }
    CHECK_THROWS_AS(sim::curve_from_csv((dir / "none.csv").string()), std::invalid_argument);
}
